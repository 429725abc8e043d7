"""Export as a standalone program: one file that needs torch, numpy and Gymnasium but not surefoot.

The file contains copies of library definitions (`bundle`), among them the loop of `export.program`. Only its Config and the
function that builds the run are written here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from surefoot.data.spaces import Box, Discrete
from surefoot.envs.goals import GoalWorld, landmarks
from surefoot.graph.export import program, program_policy, program_worlds
from surefoot.graph.export.block import with_graph
from surefoot.graph.export.bundle import Import, bundle
from surefoot.graph.export.fields import Fields, one_line
from surefoot.graph.export.shape import LevelRoles, LoopRoles, levels_of, own_task, picture_of, shape_of
from surefoot.graph.export.writing import literal
from surefoot.graph.schedule import Firing, Schedule, schedule
from surefoot.graph.spec.checked import Checked
from surefoot.graph.spec.model import Graph
from surefoot.learn.config import PPOConfig
from surefoot.nets.config import NetConfig
from surefoot.nets.continuous_heads import GaussianHead
from surefoot.nets.heads import DiscreteHead
from surefoot.train.algorithms.hierarchy import Decisions

READ_OF_PPO = (
    *("gamma", "lam", "epochs", "minibatch_size", "lr", "clip", "value_clip", "vf_coef", "ent_coef", "max_grad_norm"),
    *("target_kl", "kl_stop_factor", "normalize_advantage", "optimizer", "adam_eps", "weight_decay", "momentum"),
)
"""Settings of PPOConfig that `program.PolicyTrainer` and the optimizer read."""
READ_OF_NET = ("hidden", "activation", "shared", "ortho_init", "normalize_obs", "obs_clip")
"""Settings of NetConfig that `program_policy.PolicyNet` reads; pictures and recurrent networks read more."""

# `graph import` recognises a standalone program by this text in its docstring.
MARK = "standalone: needs"
BANNER = "# From here on: the parts of surefoot that this program uses, each under the name of its module.\n\n\n"
# The loop and the algorithm come first, as a reader wants to see them; spaces and errors last.
READING_ORDER = tuple(
    f"surefoot.{room}" for room in ("graph", "core", "learn", "nets", "train", "envs", "town", "data", "errors")
)
IMPORTS: dict[str, Import] = {
    "math": ("math", None),
    "torch": ("torch", None),
    "dataclass": ("dataclasses", "dataclass"),
    "Path": ("pathlib", "Path"),
    "SimpleNamespace": ("types", "SimpleNamespace"),
}


def to_standalone(graph: Graph | Checked) -> str:
    """Return the program; raise `GraphError` with the reason if the graph cannot be standalone.

    Args:
        graph: The graph, checked or not.
    """
    return writer_of(graph).text()


def writer_of(graph: Graph | Checked) -> StandaloneWriter:
    """Return the writer for a graph with one policy or with two levels."""
    plan = schedule(graph)
    levels = levels_of(plan)
    return LoopWriter(plan, shape_of(plan)) if levels is None else LevelsWriter(plan, levels)


class StandaloneWriter(ABC):
    """Writes Config, settings and `build` of a program, and collects the library definitions that they use."""

    watchers: tuple[Firing, ...]
    order: tuple[Firing, ...]
    """Nodes in the order of their fields in Config."""

    def __init__(self, plan: Schedule, named: tuple[Firing, ...], prefixed: tuple[Firing, ...]) -> None:
        self.plan, self.fields = plan, Fields(plan, named, prefixed)
        self.used: list[Any] = [program.run, program.parse, program.PolicyTrainer]
        """Library definitions that the written code uses."""

    def use(self, definition: Any) -> str:
        """Add a library definition to the program and return its name."""
        self.used.append(definition)
        return definition.__name__

    def text(self) -> str:
        """Return the whole program."""
        graph = self.plan.checked.graph
        body = [*self.settings(), self.build(), self.train()]
        config = self.fields.config(self.order, "\n".join(body))
        library = bundle(*dict.fromkeys(self.used), code="\n".join(body), imports=IMPORTS, reading_order=READING_ORDER)
        title = f"{one_line(graph.name)}: PPO in one file, written from a graph."
        head = f'"""{title}\n\n{MARK} torch, numpy and gymnasium\n"""\n\nfrom __future__ import annotations\n\n'
        chunks = [
            head + "\n".join(library.imports) + f"\n\nNAME = {literal(graph.name)}",
            config,
            *body,
            BANNER + library.definitions,
            'if __name__ == "__main__":\n    train(*parse(Config, __doc__))',
        ]
        text = "\n\n\n".join(chunk.strip("\n") for chunk in chunks) + "\n"
        return with_graph(text, graph)

    @abstractmethod
    def settings(self) -> list[str]:
        """Return the functions from progress to the settings of a trainer."""

    @abstractmethod
    def build(self) -> str:
        """Return the function that builds collector and trainers."""

    def train(self) -> str:
        """Return the function that trains."""
        every = [self.fields.every(self.watchers, *each) for each in (("Print", 10), ("Checkpoint", 50))]
        return (
            "def train(config: Config, out: Path | None = None, resume: Path | None = None) -> dict[str, PolicyTrainer]:\n"
            '    """Train, and return the trainers by the ids of their nodes."""\n'
            "    torch.set_num_threads(1)\n"
            "    collector, trainers = build(config)\n"
            f"    print_every, save_every = {every[0]}, {every[1]}\n"
            "    return run(config, collector, trainers, print_every, save_every, out=out, resume=resume)"
        )

    def ppo(self, name: str, firing: Firing, changed: dict[str, str] | None = None) -> str:
        """Return the function `name(config, progress)` with the settings of a trainer; `changed` are expressions."""
        values = _settings(self.fields, firing, PPOConfig, READ_OF_PPO) | (changed or {})
        return (
            f"def {name}(config: Config, progress: float) -> SimpleNamespace:\n"
            f'    """Return the settings of [node {firing.id}] when `progress` (0 … 1) of the run is over."""\n'
            f"    return {_namespace(values, 4)}"
        )

    def net(self, firing: Firing, *more: str, **changed: str) -> str:
        """Return the settings of an agent's network."""
        return _namespace(_settings(self.fields, firing, NetConfig, (*READ_OF_NET, *more)) | changed, 4)


def _settings(fields: Fields, firing: Firing, config: type[Any], names: tuple[str, ...]) -> dict[str, str]:
    """Return {setting: expression}: the Config field if the node has such a parameter, else the library's default."""
    default = config()
    values = {name: literal(getattr(default, name)) for name in names}
    for param in firing.declared.params:
        if param.config is config and param.setting in values:
            values[param.setting] = fields.read(firing, param.name)
    # lr_schedule replaces lr, as in the trainer node.
    if firing.params.get("lr_schedule") is not None:
        values["lr"] = fields.read(firing, "lr_schedule")
    return values


def _namespace(values: dict[str, str], indent: int) -> str:
    pad = " " * indent
    return "\n".join(["SimpleNamespace(", *(f"{pad}    {name}={value}," for name, value in values.items()), f"{pad})"])


class LoopWriter(StandaloneWriter):
    """One policy in one or several environments."""

    def __init__(self, plan: Schedule, shape: LoopRoles) -> None:
        # Trainer and agent first: their parameters get the short field names.
        named = (shape.trainer, shape.agent, shape.action, shape.worlds[0])
        super().__init__(plan, named, (*shape.worlds[1:], *shape.watchers))
        self.shape, self.watchers = shape, shape.watchers
        self.order = (
            *(*shape.worlds, *shape.plumbing, shape.agent, shape.action, shape.trainer),
            *shape.watchers,
        )

    def settings(self) -> list[str]:
        return [self.ppo("settings", self.shape.trainer)]

    def build(self) -> str:
        it, read = self.shape, self.fields.read
        picture = picture_of(it)
        lines = [*self._world(picture), f"    # [node {it.agent.id}] and [node {it.action.id}]"]
        size = read(it.agent, "input_size")
        box = f"({size},)" if picture is None else f'{size}, dtype="{picture.dtype}"'
        lines += [
            f'    observation = {{"obs": {self.use(Box)}({box})}}',
            f"    head = {self._head()}",
            self._policy(picture),
        ]
        scaled = read(it.trainer, "normalize_reward")
        lines += [
            f"    # [node {it.trainer.id}]",
            f"    collector = {self.use(program.StepCollector)}(",
            "        world,",
            "        policy,",
            f"        steps={read(it.trainer, 'rollout_steps')},",
            f"        gamma={read(it.trainer, 'gamma')},",
            f"        scale_rewards={scaled},",
            "        seed=config.seed,",
            "    )",
            "    trainer = PolicyTrainer(policy, lambda progress: settings(config, progress), config.seed)",
            f"    return collector, {{{literal(it.agent.id)}: trainer}}",
        ]
        head = "def build(config: Config) -> tuple[StepCollector, dict[str, PolicyTrainer]]:"
        return "\n".join([head, '    """Build collector and trainers."""', *lines])

    def _world(self, picture: Box | None) -> list[str]:
        shape = None if picture is None else picture.shape
        worlds: list[tuple[str, str]] = []
        for each in self.shape.worlds:
            task = own_task(each.params["env_id"], each.params["backend"], each.id, shape)
            count = self.fields.read(each, "num_envs")
            if task is None:
                world = f"{self.use(program_worlds.GymCopies)}({self.fields.read(each, 'env_id')}, {count})"
            else:
                world = f"{self.use(program_worlds.TaskCopies)}({self.use(type(task))}(), {count})"
            worlds.append((world, f'seed_for("node:{each.id}", config.seed) >> 32'))
        ids = " and ".join(f"[node {each.id}]" for each in self.shape.worlds)
        if len(worlds) == 1:
            return [f"    # {ids}", f"    world = {worlds[0][0]}"]
        rows = [f"        ({world}, {seed})," for world, seed in worlds]
        return [f"    # {ids}", f"    world = {self.use(program_worlds.SideBySide)}(", *rows, "    )"]

    def _head(self) -> str:
        agent, action, read = self.shape.agent, self.shape.action, self.fields.read
        size = read(agent, "output_size")
        if agent.params["action_space"] == "discrete":
            return f"{self.use(DiscreteHead)}({self.use(Discrete)}({size}))"
        mode, std = action.params["mode"], f"log_std_init={read(agent, 'log_std_init')}"
        bounds = f", {read(action, 'low')}, {read(action, 'high')}" if mode != "none" else ""
        space = f"{self.use(Box)}(({size},){bounds})"
        if mode == "scale":
            return f"{self.use(program_policy.ScaledHead)}({space}, factor={read(action, 'factor')}, {std})"
        return f"{self.use(GaussianHead)}({space}, {std})"

    def _policy(self, picture: Box | None) -> str:
        agent, read = self.shape.agent, self.fields.read
        recurrent = agent.params["network"] in ("gru", "lstm")
        if picture is not None:
            net, maker, more = self.net(agent, "cnn_features"), program_policy.picture_policy, ""
        elif recurrent:
            net, maker = self.net(agent, "memory_size", memory=read(agent, "network")), program_policy.row_policy
            more = f", {self.use(program_policy.RecurrentNet)}"
        else:
            net, maker, more = self.net(agent), program_policy.row_policy, ""
        return f"    net = {net}\n    policy = {self.use(maker)}(observation, head, net, config.seed{more})"


class LevelsWriter(StandaloneWriter):
    """Two levels in a maze of rooms."""

    def __init__(self, plan: Schedule, levels: LevelRoles) -> None:
        self.levels, self.watchers = levels, levels.watchers
        super().__init__(plan, (levels.trainer, levels.low, levels.goal, levels.env, levels.high), levels.watchers)
        it = levels
        self.order = (it.env, it.high, it.goal, it.low, it.action, it.step, it.trainer, *it.watchers)

    def settings(self) -> list[str]:
        it, read = self.levels, self.fields.read
        # A step of the manager lasts up to steps_per_goal environment steps, so it discounts by as many.
        gamma = f"{read(it.high, 'gamma')} ** {read(it.high, 'steps_per_goal')}"
        return [self.ppo("settings", it.trainer), self.ppo("manager_settings", it.high, {"gamma": gamma})]

    def build(self) -> str:
        it, read, use = self.levels, self.fields.read, self.use
        near, every = read(it.goal, "near"), read(it.high, "steps_per_goal")
        lines = [
            f"    # [node {it.env.id}]",
            f"    maze = {use(type(it.maze))}()",
            f"    base = {use(program_worlds.TaskCopies)}(maze, {read(it.env, 'num_envs')})",
            f"    # [node {it.goal.id}] and [node {it.step.id}]",
            f'    goal = {use(landmarks)}(maze.landmarks, lambda obs: maze.where(obs["obs"]), near={near}, among=maze.nearby)',
            f"    # [node {it.high.id}]",
            '    manager_seed = seed_for("manager", config.seed)',
            f"    net = {self.net(it.high)}",
            f"    head = {use(DiscreteHead)}(goal.space)",
            f"    manager = {use(program_policy.row_policy)}(base.observation, head, net, manager_seed)",
            f"    steps, gamma = {read(it.trainer, 'rollout_steps')}, {read(it.high, 'gamma')}",
            f"    decisions = {use(Decisions)}(",
            f"        manager, base.num_envs, steps=steps, every={every}, gamma=gamma, seed=config.seed",
            "    )",
            f"    progress, env_share = {read(it.goal, 'progress')}, {read(it.goal, 'env_share')}",
            f"    world = {use(GoalWorld)}(base, goal, decisions, every={every}, progress=progress, env_share=env_share)",
            f"    # [node {it.low.id}] and [node {it.action.id}]",
            f"    net = {self.net(it.low)}",
            f"    head = DiscreteHead({use(Discrete)}({read(it.low, 'output_size')}))",
            "    policy = row_policy(world.observation, head, net, config.seed)",
            f"    # [node {it.trainer.id}]",
            f"    gamma = {read(it.trainer, 'gamma')}",
            f"    collector = {use(program.GoalCollector)}(",
            "        world, policy, steps=steps, gamma=gamma, scale_rewards=False, seed=config.seed",
            "    )",
            "    collector.decisions = decisions",
            "    collector.manager = PolicyTrainer(manager, lambda progress: manager_settings(config, progress), manager_seed)",
            "    trainer = PolicyTrainer(policy, lambda progress: settings(config, progress), config.seed)",
            f"    return collector, {{{literal(it.low.id)}: trainer, {literal(it.high.id)}: collector.manager}}",
        ]
        head = "def build(config: Config) -> tuple[GoalCollector, dict[str, PolicyTrainer]]:"
        return "\n".join([head, '    """Build collector and trainers."""', *lines])
