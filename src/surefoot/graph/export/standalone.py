"""`standalone`: one file that needs torch, numpy and Gymnasium alone, and reads from top to bottom."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np

from surefoot.core.advantage import gae
from surefoot.core.losses import LOG_RATIO_LIMIT, clipped_surrogate, value_loss
from surefoot.data.spaces import Box
from surefoot.envs.builtin.classic import IN_KERNEL, definition
from surefoot.envs.builtin.streams import Streams
from surefoot.envs.gym.atari import is_atari
from surefoot.envs.make import make_world
from surefoot.envs.register import own_worlds
from surefoot.errors import GraphError
from surefoot.graph.export import nets, pieces
from surefoot.graph.export.fields import Fields, at_progress, one_line
from surefoot.graph.export.inline import function_source, task_source
from surefoot.graph.export.levels import LevelsWriter, levels_of
from surefoot.graph.export.shape import Shape, shape_of
from surefoot.graph.export.writing import literal
from surefoot.graph.schedule import Firing, Schedule, schedule
from surefoot.graph.spec.check import Checked
from surefoot.graph.spec.model import Graph
from surefoot.learn.minibatches import split_sizes
from surefoot.nets.images import CONVOLUTIONS, FEATURES, image_kind
from surefoot.nets.recurrent import GATES, UNROLL

_LOG_STD = "        self.log_std = nn.ParameterList([torch.full((config.{output_size},), config.{init_log_std})])\n"
_SCALED = (
    '    scaled = scaler.scale(rollout["reward"].numpy(), rollout["ended"].numpy())\n'
    '    rollout["reward"] = torch.from_numpy(scaled).float()\n'
)


def to_standalone(graph: Graph | Checked) -> str:
    """The program's text; a graph that cannot stand alone is refused with what stands in the way."""
    plan = schedule(graph)
    levels = levels_of(plan)
    if levels is None:
        writer = _Writer(plan, shape_of(plan))
        return _program(plan, writer.body(), writer.config, writer.needs)
    above = LevelsWriter(plan, levels)
    return _program(plan, above.body("\n".join(_functions(levels.trainer))), above.config, _NAMESPACE)


_NAMESPACE = {"more": "from types import SimpleNamespace\n"}


def _program(plan: Schedule, body: list[str], config: Callable[[str], str], needs: dict[str, str]) -> str:
    """Head, Config, body; `needs` are imports besides those of all programs."""
    graph = plan.checked.graph
    title = f"{one_line(graph.name)}: PPO in one file, written out from a graph."
    head = f'"""{title}\n\ngraph sha256 {graph.sha256()}\nstandalone: needs torch, numpy and gymnasium\n"""\n'
    about = f"ABOUT = {literal(graph.about)}\n" if graph.about else ""
    named = f"NAME = {literal(graph.name)}\n{about}LOG_RATIO_LIMIT = {LOG_RATIO_LIMIT}\n"
    imports = pieces.IMPORTS.format(**{"gym": "", "more": ""} | needs)
    whole = [f"{head}\n{imports}\n{named}", config("\n".join(body)), *body]
    text = "\n\n".join(chunk.strip("\n") + "\n" for chunk in whole)
    ast.parse(text)
    return text


class _Writer:
    def __init__(self, plan: Schedule, shape: Shape) -> None:
        self.plan, self.shape = plan, shape
        self.remembers = shape.agent.params["network"] in UNROLL
        self.picture = _picture(shape)
        self.fields = Fields(
            plan, (shape.trainer, shape.agent, shape.action, shape.worlds[0]), (*shape.worlds[1:], *shape.watchers)
        )
        self.name, self.of = self.fields.name, self.fields.of
        self.needs: dict[str, str] = {}

    def body(self) -> list[str]:
        """Everything below Config."""
        trainer, tasks = self.shape.trainer, self._tasks()
        self.needs = {"gym": "import gymnasium as gym\n"} if any(task is None for task in tasks) else {}
        body = [pieces.SEEDS, *self._world_chunks(tasks)]
        if self._normalizes():
            body.append(nets.NORMALIZER)
        if trainer.params["normalize_rewards"]:
            body.append(pieces.SCALER)
        body += [pieces.EPISODES, nets.LAYER, *self._senses(), self._policy(), "\n".join(_functions(trainer))]
        return [*body, self._update(), self._collect(), pieces.SAVE, self._main(tasks), pieces.PARSE]

    def config(self, body: str) -> str:
        """Of all nodes."""
        shape = self.shape
        order = (*shape.worlds, *shape.plumbing, shape.agent, shape.action, shape.trainer, *shape.watchers)
        return self.fields.config(order, body)

    def _tasks(self) -> list[Any]:
        """Of each environment, the task of our own that steps it; None where Gymnasium does."""
        shape = self.picture.shape if self.picture is not None else None
        return [own_task(each.params["env_id"], each.params["backend"], each.id, shape) for each in self.shape.worlds]

    def _world_chunks(self, tasks: list[Any]) -> list[str]:
        chunks: list[str] = []
        kinds = {type(task) for task in tasks if task is not None}
        if len(kinds) > 1 or (kinds and None in tasks):
            raise GraphError("environments of several kinds do not stand alone together; export this graph as a script")
        ids = ", ".join(f"[node {each.id}]" for each in self.shape.worlds)
        if kinds:
            chunks.append(f"# {ids}: the library's own task, as it is there\n" + "\n".join(task_source(tasks[0])))
            chunks.append(pieces.OWN_WORLD)
        else:
            cast = "" if self.picture is not None and self.picture.dtype == "uint8" else ".astype(np.float32)"
            chunks.append(f"# {ids}\n" + pieces.GYM_WORLD.format(cast=cast))
        if len(tasks) > 1:
            chunks.append(pieces.SEVERAL)
        return chunks

    def _normalizes(self) -> bool:
        """Pictures are not standardised: their bytes become 0 … 1."""
        return self.shape.agent.params["normalize_obs"] and self.picture is None

    def _senses(self) -> list[str]:
        """What stands before the layers: convolutions, a memory, or nothing."""
        if self.picture is not None:
            return [_images(self.picture)]
        if not self.remembers:
            return []
        kind = self.shape.agent.params["network"]
        unroll = [line.replace(f"def _{kind}(", f"def {kind}(") for line in function_source(UNROLL[kind])]
        return ["\n".join(unroll), nets.MEMORY.format(gates=GATES[kind], unroll=kind)]

    def _policy(self) -> str:
        agent = self.shape.agent
        discrete, fields = agent.params["action_space"] == "discrete", self.of(agent)
        first = nets.SEES if self.picture is not None else nets.REMEMBERS.format(**fields) if self.remembers else ""
        extra = "" if discrete else _LOG_STD.format(**fields)
        before = "        obs = self.torso(obs)\n" if self.picture is not None else ""
        if self._normalizes():
            extra += f"        self.normalizer = Normalizer(config.{fields['input_size']})\n"
            before = "        obs = self.normalizer(obs)\n"
        about = "Actor and critic" + (" on one trunk" if agent.params["shared"] else ", a network each") + "; "
        about += (
            "one of several choices." if discrete else "numbers from a normal distribution whose deviation is a weight."
        )
        text = nets.POLICY.format(about=about, first=first, extra=extra, **fields)
        if self.remembers:
            width = "2 * " if agent.params["network"] == "lstm" else ""
            text += nets.FORWARD_WITH_MEMORY.format(before=before, width=width)
        else:
            text += nets.FORWARD.format(before=before)
        acts = nets.DISCRETE if discrete else nets.GAUSSIAN
        return f"# [node {agent.id}]\n{text}" + acts.format(**(nets.CARRYING if self.remembers else nets.PLAIN))

    def _update(self) -> str:
        trainer = self.shape.trainer
        fields, params = self.of(trainer), trainer.params
        lr = params["lr_schedule"] if params["lr_schedule"] is not None else params["learning_rate"]
        lr_field = fields["lr_schedule"] if params["lr_schedule"] is not None else fields["learning_rate"]
        mode = params["normalize_advantages"]
        return pieces.UPDATE.format(
            lr=at_progress(lr, lr_field, trainer.id),
            clip=at_progress(params["clip_param"], fields["clip_param"], trainer.id),
            ent=at_progress(params["entropy_coef"], fields["entropy_coef"], trainer.id),
            advantage='standardize(part["advantage"])' if mode == "minibatch" else 'part["advantage"]',
            batch='    rows["advantage"] = standardize(rows["advantage"])\n' if mode == "batch" else "",
            **self._layout(),
            **fields,
        )

    def _layout(self) -> dict[str, Any]:
        """How the steps of a rollout lie: one row each, or as columns of streams where the policy remembers."""
        size = f"config.{self.name(self.shape.trainer, 'minibatch_size')}"
        if not self.remembers:
            plain = {"rows": pieces.ROWS, "evaluate": pieces.EVALUATE, "axis": 0, "width": size}
            return plain | {"shuffle": "", "flat": ""}
        return {
            "rows": pieces.COLUMNS,
            "evaluate": pieces.WALK,
            "axis": 1,
            "width": f'max(1, {size} // len(rows["value"]))',
            "shuffle": '        carried = [x.index_select(0, order) for x in rollout["carry"]]\n',
            "flat": ".flatten()",
        }

    def _collect(self) -> str:
        trainer, action = self.shape.trainer, self.shape.action
        low, high = (self.name(action, name) for name in ("low", "high"))
        taken = "action.numpy()"
        if action.params["mode"] == "clip":
            taken = f"np.clip(action.numpy(), np.float32(config.{low}), np.float32(config.{high}))"
            if any(isinstance(action.params[name], tuple) for name in ("low", "high")):
                taken = (
                    taken.replace("np.float32(", "np.asarray(")
                    .replace(f".{low})", f".{low}, np.float32)")
                    .replace(f".{high})", f".{high}, np.float32)")
                )
        scales = trainer.params["normalize_rewards"]
        scale = _SCALED if scales else ""
        if not scales:
            scale = '    rollout["reward"] = rollout["reward"].float()\n'
        more = ["carry: list[Tensor], start: np.ndarray"] * self.remembers + ["scaler: RewardScaler"] * scales
        given = ", episodes: Episodes" + (f",\n    {', '.join(more)}" if more else "")
        memory = dict(pieces.CARRIED if self.remembers else pieces.NOT_CARRIED)
        memory["then"] = f"        episodes.count(reward, ended)\n{memory['then']}"
        text = pieces.COLLECT.format(more=given, action=taken, scale=scale, **memory, **self.of(trainer))
        return f"# [node {self.shape.action.id}] and the loop around it\n" + text

    def _main(self, tasks: list[Any]) -> str:
        made = [self._make_world(firing, task) for firing, task in zip(self.shape.worlds, tasks, strict=True)]
        world = (
            f"    world = {made[0]}"
            if len(made) == 1
            else "    world = Several(\n" + "".join(f"        {each},\n" for each in made) + "    )"
        )
        trainer = self.shape.trainer
        scales, normalizes = trainer.params["normalize_rewards"], self._normalizes()
        return pieces.MAIN.format(
            world=world,
            scaler=f"    scaler = RewardScaler(world.count, config.{self.name(trainer, 'gamma')})\n" if scales else "",
            scaler_arg=", scaler" if scales else "",
            carry=pieces.NOTHING_CARRIED if self.remembers else "",
            carried=", carry, start" if self.remembers else "",
            absorb='        policy.normalizer.update(rollout["obs"].flatten(0, 1).double().numpy())\n'
            if normalizes
            else "",
            horizon_length=self.name(trainer, "horizon_length"),
            print_every=self.fields.every(self.shape.watchers, "Print", 10),
            save_every=self.fields.every(self.shape.watchers, "Checkpoint", 50),
        )

    def _make_world(self, firing: Firing, task: Any) -> str:
        count = f"config.{self.name(firing, 'num_envs')}"
        seed = "config.seed" if firing.id in self.plan.alone else f'seed_for("node:{firing.id}", config.seed) >> 32'
        if task is None:
            return f"World(config.{self.name(firing, 'env_id')}, {count}, {seed})"
        limit = task.max_episode_steps if task.max_episode_steps is not None else "2**62"
        return f"World({type(task).__name__}(), {limit}, {count}, {seed})"


def _functions(trainer: Firing) -> list[str]:
    lines = [f"# [node {trainer.id}]: the library's own functions, as they are there"]
    for function in (gae, clipped_surrogate, value_loss, split_sizes):
        lines += [*function_source(function, without=("valid", "dual_clip")), "", ""]
    return [*lines, *pieces.LEARNING.strip("\n").splitlines()]


def own_task(env_id: str, backend: str, id: str, picture: tuple[int, ...] | None = None) -> Any:
    """The numpy definition behind an environment of our own; None for one of Gymnasium's, which shows a row or `picture`."""
    if picture is None and backend != "gymnasium" and env_id in own_worlds():
        world = definition(env_id, 1) if env_id in IN_KERNEL else make_world(env_id, 1)
        if not isinstance(world, Streams) or world.task.mask(world.task.start(np.random.default_rng(0), 1)) is not None:
            raise GraphError(f"{id}: {env_id} is a world of surefoot's; export this graph as a script")
        return world.task
    if backend not in ("auto", "gymnasium"):
        raise GraphError(f"{id}: backend={backend!r} needs surefoot; use 'gymnasium', or export as a script")
    box, start = _shown(env_id)
    wanted = picture if picture is not None else box.shape if box is not None and len(box.shape) == 1 else None
    if box is None or start or box.shape != wanted or (picture is None and box.dtype != "float32"):
        raise GraphError(f"{id}: {env_id} shows more than one row of numbers; export this graph as a script")
    return None


def _shown(env_id: str) -> tuple[Box | None, int]:
    """What Gymnasium's env shows, None if that is more than one thing; and the first of its actions."""
    world = make_world(env_id, 1, backend="gymnasium")
    parts, start = dict(world.observation), getattr(world.action, "start", 0)
    world.close()
    return (parts["obs"] if set(parts) == {"obs"} else None), start


def _picture(shape: Shape) -> Box | None:
    """What the agent looks at through convolutions; None where it is a row of numbers."""
    agent, env = shape.agent, shape.worlds[0]
    size = agent.params["input_size"]
    if not isinstance(size, tuple):
        return None
    if is_atari(env.params["env_id"]):
        raise GraphError(f"{env.id}: Atari's games are prepared by surefoot; export this graph as a script")
    box, _ = _shown(env.params["env_id"])
    if box is None or box.shape != size or image_kind(box, "auto", "obs") is None:
        raise GraphError(
            f"{agent.id}: input_size is {list(size)}, which is no picture that {env.params['env_id']} shows; "
            "export this graph as a script"
        )
    return box


def _images(box: Box) -> str:
    """Convolutions for pictures like this: a plain one, channels first, or channels last."""
    kind, bytes = image_kind(box, "auto", "obs"), box.dtype == "uint8"
    assert kind is not None
    unpack, turned = "height, width, channels = shape", "x.permute(0, 3, 1, 2)"
    if len(box.shape) == 2:
        unpack, turned = "(height, width), channels = shape, 1", "x.unsqueeze(1)"
    elif box.shape[0] <= min(box.shape[1:]):
        unpack, turned = "channels, height, width = shape", "x"
    return nets.IMAGES.format(
        plan=CONVOLUTIONS[kind],
        features=FEATURES[kind],
        bytes="; their bytes become 0 … 1 inside, so that a rollout keeps bytes" if bytes else "",
        unpack=unpack,
        turned=turned,
        weight="first.weight * (1.0 / 255.0)" if bytes else "first.weight",
    )
