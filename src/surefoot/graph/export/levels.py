"""`standalone` for two policies, one above the other, in a maze of rooms."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.envs.builtin.maze import LongMaze
from surefoot.envs.make import make_world
from surefoot.envs.register import own_worlds
from surefoot.errors import GraphError
from surefoot.graph.export import nets, pieces, rooms
from surefoot.graph.export.fields import Fields, at_progress
from surefoot.graph.export.plain import by_role, is_wired
from surefoot.graph.export.shape import refuse_gelu, watchers_of
from surefoot.graph.patterns import LEVEL_ROLES, LEVELS
from surefoot.graph.schedule import Firing, Schedule
from surefoot.learn.config import PPOConfig
from surefoot.nets.config import NetConfig

AS_SCRIPT = "export this graph as a script"
KNOBS = ("gamma", "lam", "epochs", "minibatch_size", "value_coef", "value_clip", "max_grad_norm", "target_kl")
"""Of the trainer, as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """Who is who; the maze comes with it."""

    env: Firing
    high: Firing
    goal: Firing
    low: Firing
    action: Firing
    step: Firing
    trainer: Firing
    watchers: tuple[Firing, ...]
    maze: LongMaze


def levels_of(plan: Schedule) -> Levels | None:
    """None where there is no manager; a GraphError says what of a hierarchy does not stand alone."""
    if not any(each.declared.name == LEVEL_ROLES["high"] for each in plan.firings):
        return None
    found = by_role(plan, LEVEL_ROLES)
    if found is None or not is_wired(plan, {role: each.id for role, each in found.items()}, LEVELS):
        raise GraphError(f"this wiring of two policies does not stand alone; {AS_SCRIPT}")
    ids = {each.id for each in found.values()}
    watchers = watchers_of([each for each in plan.firings if each.id not in ids], found["trainer"].id)
    _refuse(found)
    return Levels(**found, watchers=watchers, maze=_maze(found["env"]))


def _refuse(found: dict[str, Firing]) -> None:
    high, goal, low, trainer = (found[role] for role in ("high", "goal", "low", "trainer"))
    bent = {
        f"{goal.id}: goals={goal.params['goals']!r}": goal.params["goals"] != "rooms",
        f"{low.id}: network={low.params['network']!r}": low.params["network"] != "mlp",
        f"{low.id}: a deterministic agent": low.params["deterministic"],
        f"{low.id}: normalize_obs": low.params["normalize_obs"],
        f"{low.id}: action_space={low.params['action_space']!r}": low.params["action_space"] != "discrete",
        f"{found['action'].id}: mode={found['action'].params['mode']!r}": found["action"].params["mode"] != "none",
        f"{trainer.id}: normalize_rewards": trainer.params["normalize_rewards"],
        f"{high.id}: a horizon_length that is not the trainer's": high.params["horizon_length"]
        != trainer.params["horizon_length"],
    }
    for what, so in bent.items():
        if so:
            raise GraphError(f"{what} does not stand alone in a hierarchy; {AS_SCRIPT}")
    refuse_gelu(low)
    refuse_gelu(high)


def _maze(env: Firing) -> LongMaze:
    env_id = env.params["env_id"]
    task = getattr(make_world(env_id, 1), "task", None) if env_id in own_worlds() else None
    if not isinstance(task, LongMaze) or task.rooms > 9:
        raise GraphError(f"{env.id}: only a maze of up to nine rooms stands alone in a hierarchy; {AS_SCRIPT}")
    return task


class LevelsWriter:
    """Writes the parts of the program out, below its Config."""

    def __init__(self, plan: Schedule, levels: Levels) -> None:
        self.levels = levels
        named = (levels.trainer, levels.low, levels.goal, levels.env, levels.high)
        self.fields = Fields(plan, named, levels.watchers)
        self.all = {
            param: field for each in (levels.high, *named[:-1]) for param, field in self.fields.of(each).items()
        }
        """{parameter: field}; where several nodes have one, the trainer's and the worker's come before the manager's."""

    def config(self, body: str) -> str:
        """Of all nodes, those in front of which others stand included."""
        it = self.levels
        return self.fields.config(
            (it.env, it.high, it.goal, it.low, it.action, it.step, it.trainer, *it.watchers), body
        )

    def body(self, functions: str) -> list[str]:
        """Everything below Config; `functions` are the library's own."""
        it, fields = self.levels, self.all
        manager = rooms.MANAGER.format(**fields | {"gamma": self.fields.name(it.high, "gamma")})
        return [
            pieces.SEEDS,
            drawn(it.maze, it.env.id),
            nets.LAYER,
            rooms.POLICY,
            f"# [node {it.high.id}]\n{manager}",
            f"# [node {it.goal.id}] and [node {it.step.id}]\n" + rooms.WORLD.format(**fields),
            functions,
            self._knobs(),
            update(),
            self._collect(),
            rooms.SAVE,
            self._train(),
            pieces.PARSE,
        ]

    def _knobs(self) -> str:
        it, default = self.levels, PPOConfig()
        high, low = self.fields.of(it.high), self.fields.of(it.trainer)
        rate = "lr_schedule" if it.trainer.params["lr_schedule"] is not None else "learning_rate"
        worker = {
            "lr": at_progress(it.trainer.params[rate], low[rate], it.trainer.id),
            "clip": at_progress(it.trainer.params["clip_param"], low["clip_param"], it.trainer.id),
            "ent_coef": at_progress(it.trainer.params["entropy_coef"], low["entropy_coef"], it.trainer.id),
            **{name: f"config.{low[name]}" for name in KNOBS},
            "normalize": f"config.{low['normalize_advantages']}",
        }
        manager = {
            "lr": at_progress(it.high.params["learning_rate"], high["learning_rate"], it.high.id),
            "clip": default.clip,
            "ent_coef": at_progress(it.high.params["entropy_coef"], high["entropy_coef"], it.high.id),
            "gamma": f"config.{high['gamma']}**config.{high['steps_per_goal']}",
            "lam": default.lam,
            **{name: f"config.{high[name]}" for name in ("epochs", "minibatch_size")},
            "value_coef": default.vf_coef,
            **{name: getattr(default, name) for name in ("value_clip", "max_grad_norm", "target_kl")},
            "normalize": f"config.{high['normalize_advantages']}",
        }
        return rooms.KNOBS.format(
            high_id=it.high.id, low_id=it.trainer.id, high=_arguments(manager), low=_arguments(worker)
        )

    def _collect(self) -> str:
        memory = pieces.NOT_CARRIED | {"act": "        action, log_prob, value = policy.act(seen, None, generator)\n"}
        scale = '    rollout["reward"] = rollout["reward"].float()\n'
        text = pieces.COLLECT.format(more="", action="action.numpy()", scale=scale, **memory, **self.all)
        given = "config: Config, world: World, policy: Policy, generator: torch.Generator, obs: np.ndarray"
        loop = _with_signature(text, f"def collect({given}) -> tuple[dict, np.ndarray]:")
        return f"# [node {self.levels.low.id}], [node {self.levels.action.id}] and the loop around them\n{loop}"

    def _train(self) -> str:
        it, net = self.levels, NetConfig()
        high, low = self.fields.of(it.high), self.fields.of(it.low)
        above = [f"config.{high[name]}" for name in ("hidden_sizes", "activation")]
        return rooms.TRAIN.format(
            high_net=", ".join([*above, str(net.shared), str(net.ortho_init)]),
            low_net=", ".join(f"config.{low[name]}" for name in ("hidden_sizes", "activation", "shared", "ortho_init")),
            output_size=low["output_size"],
            horizon_length=self.all["horizon_length"],
            print_every=self.fields.every(it.watchers, "Print", 10),
            save_every=self.fields.every(it.watchers, "Checkpoint", 50),
        )


def update() -> str:
    """The update of every program that stands alone, of what it is handed rather than of Config: two learn by it."""
    names = {name: name for name in KNOBS}
    text = pieces.UPDATE.format(
        lr="knobs.lr",
        clip="knobs.clip",
        ent="knobs.ent_coef",
        advantage='standardize(part["advantage"]) if knobs.normalize == "minibatch" else part["advantage"]',
        batch=rooms.BATCH,
        rows=rooms.ROWS,
        evaluate=rooms.EVALUATE,
        axis=0,
        width="knobs.minibatch_size",
        shuffle="",
        flat="",
        **names,
    )
    text = text.replace("config.", "knobs.").replace(
        "    lr = knobs.lr\n    clip, ent_coef = knobs.clip, knobs.ent_coef\n",
        "    lr, clip, ent_coef = knobs.lr, knobs.clip, knobs.ent_coef\n",
    )
    given = "knobs: SimpleNamespace, policy: Policy, optimizer: Adam, generator: torch.Generator, rollout: dict"
    return "@torch.enable_grad()\n" + _with_signature(text, f"def update({given}) -> dict:")


def _with_signature(text: str, signature: str) -> str:
    """A function's text, said to take something else; decorators are left out."""
    (function,) = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef)
    return "\n".join([signature, *text.splitlines()[function.body[0].lineno - 1 :]])


def drawn(maze: LongMaze, id: str) -> str:
    """The maze as text and as what follows from it; refused where the text would not say all."""
    row, column = np.divmod(np.arange(maze.height * maze.width), maze.width)
    looks = np.zeros((len(row), maze.height + maze.width), np.float32)
    looks[np.arange(len(row)), row] = looks[np.arange(len(row)), maze.height + column] = 1.0
    signs = np.where(maze.floor, maze.room(looks).astype(str), "#").reshape(maze.height, maze.width)
    assert int((signs.ravel() != "#").argmax()) == maze.first, "the walk begins in the first cell of the first room"
    assert np.flatnonzero(signs.ravel() == str(maze.rooms)).tolist() == [maze.goal], "the way out has its own number"
    return rooms.MAZE.format(
        id=id,
        drawing="\n".join(" ".join("".join(line) for line in signs[at : at + 6]) for at in range(0, len(signs), 6)),
        rows=maze.landmarks[:, 0].tolist(),
        columns=maze.landmarks[:, 1].tolist(),
        limit=maze.max_episode_steps,
    )


def _arguments(given: dict[str, Any]) -> str:
    """Keywords as people lay them out."""
    lines, line = list[str](), ""
    for name, value in given.items():
        each = f"{name}={value}, "
        if len(line) + len(each) > 112:
            lines.append(line.rstrip())
            line = ""
        line += each
    return f"\n{' ' * 8}".join([*lines, line.rstrip()])
