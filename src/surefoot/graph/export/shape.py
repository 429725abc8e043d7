"""The roles of nodes in a graph that can stand alone: one loop over one or several environments, or two policies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from surefoot.data.spaces import Box
from surefoot.envs.builtin.classic import IN_KERNEL, definition
from surefoot.envs.builtin.maze import LongMaze
from surefoot.envs.builtin.streams import Streams
from surefoot.envs.gym.atari import is_atari
from surefoot.envs.make import make_world
from surefoot.envs.register import own_worlds
from surefoot.errors import GraphError
from surefoot.graph.export.plain import by_role, is_wired, plain_roles
from surefoot.graph.schedule import Firing, Schedule
from surefoot.graph.spec.model import End, as_end
from surefoot.graph.wiring import GATHERED, LEVEL_ROLES, LEVELS, several_edges
from surefoot.nets.images import image_kind

AS_SCRIPT = "export this graph as a script"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopRoles:
    """A PPO loop over one environment or several side by side."""

    worlds: tuple[Firing, ...]
    agent: Firing
    action: Firing
    trainer: Firing
    plumbing: tuple[Firing, ...]
    """ORs, steps, batches and splits, which a loop in plain Python does not need."""
    watchers: tuple[Firing, ...] = ()
    """Print, Recorder and Checkpoint behind the trainer: the program has all three."""


def shape_of(plan: Schedule) -> LoopRoles:
    """The shape, or a GraphError that says what does not stand alone."""
    by_id = {each.id: each for each in plan.firings}
    roles = plain_roles(plan) or plain_roles(plan, remembers=True)
    if roles is not None:
        watchers = watchers_of([each for each in plan.firings if each.id not in roles.values()], roles["trainer"])
        shape = LoopRoles(
            worlds=(by_id[roles["env"]],),
            agent=by_id[roles["agent"]],
            action=by_id[roles["action"]],
            trainer=by_id[roles["trainer"]],
            plumbing=(by_id[roles["either"]], by_id[roles["step"]]),
            watchers=watchers,
        )
    else:
        shape = _several(plan, by_id)
    agent = shape.agent.params
    size = agent["input_size"]
    picture = agent["network"] == "cnn" and isinstance(size, tuple)
    if not (isinstance(size, int) or picture) or not isinstance(agent["output_size"], int):
        raise GraphError(
            f"{shape.agent.id}: only a network for one row of numbers or one picture stands alone; {AS_SCRIPT}"
        )
    return shape


BOUND = ("Town", "Tools", "Language")
"""Kinds of nodes that are a part of the library: a file without it cannot have them."""


def _refused(firing: Firing) -> str:
    if firing.declared.category in BOUND:
        return (
            f"{firing.id}: {firing.declared.name} is a part of surefoot ({firing.declared.calls}), which a file that stands "
            f"alone does not have; {AS_SCRIPT}"
        )
    return (
        f"{firing.id}: {firing.declared.name} does not stand alone; the program has a record and checkpoints of its own: take "
        "the node out, or export this graph as a script"
    )


WATCHERS = {
    "Print": {"value": "loss_info"},
    "Recorder": {"loss_info": "loss_info", "episodes": "episodes"},
    "Checkpoint": {"trigger": "training_complete", "learner": "learner"},
}
"""{node: {its input: the trainer's output}} of what the program does by itself, each at most once."""


def watchers_of(found: list[Firing], trainer: str) -> tuple[Firing, ...]:
    """Those that look at the trainer as the program does by itself; anything else is refused."""
    for each in found:
        wanted = WATCHERS.get(each.declared.name)
        given = {i.port.name: i.source for i in each.inputs if i.source is not None}
        if wanted is None or given != {port: End(trainer, output) for port, output in wanted.items()}:
            raise GraphError(_refused(each))
    names = [each.declared.name for each in found]
    if len(set(names)) < len(names):
        raise GraphError(_refused(found[-1]))
    return tuple(sorted(found, key=lambda each: list(WATCHERS).index(each.declared.name)))


def _several(plan: Schedule, by_id: dict[str, Firing]) -> LoopRoles:
    allowed = {"Environment", "OR", "Step", "Batch", "Split", "PPOAgentNode", "ActionProcessor", "PPOTrainerNode"}
    kinds: dict[str, list[Firing]] = {}
    for each in plan.firings:
        if each.declared.name not in allowed and each.declared.name not in WATCHERS:
            raise GraphError(_refused(each))
        kinds.setdefault(each.declared.name, []).append(each)
    for name in ("PPOAgentNode", "ActionProcessor", "PPOTrainerNode"):
        if len(kinds.get(name, [])) != 1:
            raise GraphError(f"a program that stands alone has one {name}; this graph has {len(kinds.get(name, []))}")
    agent, action, trainer = (kinds[name][0] for name in ("PPOAgentNode", "ActionProcessor", "PPOTrainerNode"))
    if agent.params["deterministic"] or action.params["mode"] not in ("none", "clip"):
        raise GraphError(
            f"{action.id}: {action.params['mode']} and deterministic agents do not stand alone; {AS_SCRIPT}"
        )
    return _rows(plan, by_id, agent, action, trainer)


def _rows(plan: Schedule, by_id: dict[str, Firing], agent: Firing, action: Firing, trainer: Firing) -> LoopRoles:
    """Environments in the order of their rows, if everything is wired as in `wiring.several_edges`."""

    def source(id: str, port: str) -> str:
        found = next((each.source for each in by_id[id].inputs if each.port.name == port), None)
        if found is None:
            raise GraphError(f"{id}: nothing comes to {port}; this wiring does not stand alone: {AS_SCRIPT}")
        return found.node

    see = source(agent.id, "observations")
    rows: list[tuple[str, str, str]] = []
    for letter in [each.port.name for each in by_id[see].inputs if each.source is not None]:
        either = source(see, letter)
        rows.append((source(either, "a"), either, source(either, "b")))
    batches = [source(trainer.id, port) for port in GATHERED]
    share = source(rows[0][2], "actions")
    names = {"see": see, "agent": agent.id, "action": action.id, "share": share, "trainer": trainer.id}
    wanted = {(as_end(a), as_end(b), delay) for a, b, delay in several_edges(rows, batches, **names)}
    given = {
        (each.source, End(firing.id, each.port.name), each.edge.delay)
        for firing in plan.firings
        if firing.declared.name not in WATCHERS
        for each in firing.inputs
        if each.edge is not None
    }
    if given != wanted:
        raise GraphError(f"this wiring does not stand alone; {AS_SCRIPT}")
    order = [*(row[1] for row in rows), *(row[2] for row in rows), see, *batches, share]
    return LoopRoles(
        worlds=tuple(by_id[row[0]] for row in rows),
        agent=agent,
        action=action,
        trainer=trainer,
        plumbing=tuple(by_id[id] for id in order),
        watchers=watchers_of([each for each in plan.firings if each.declared.name in WATCHERS], trainer.id),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelRoles:
    """Two policies, one above the other, and the maze that they walk in."""

    env: Firing
    high: Firing
    goal: Firing
    low: Firing
    action: Firing
    step: Firing
    trainer: Firing
    watchers: tuple[Firing, ...]
    maze: LongMaze


def levels_of(plan: Schedule) -> LevelRoles | None:
    """Return the roles of two policies, None if there is no manager; raise if they cannot stand alone."""
    if not any(each.declared.name == LEVEL_ROLES["high"] for each in plan.firings):
        return None
    found = by_role(plan, LEVEL_ROLES)
    if found is None or not is_wired(plan, {role: each.id for role, each in found.items()}, LEVELS):
        raise GraphError(f"this wiring of two policies does not stand alone; {AS_SCRIPT}")
    ids = {each.id for each in found.values()}
    watchers = watchers_of([each for each in plan.firings if each.id not in ids], found["trainer"].id)
    _refuse_variants(found)
    env_id = found["env"].params["env_id"]
    maze = getattr(make_world(env_id, 1), "task", None) if env_id in own_worlds() else None
    if not isinstance(maze, LongMaze) or maze.rooms > 9:
        raise GraphError(f"{found['env'].id}: only a maze of up to nine rooms stands alone in a hierarchy; {AS_SCRIPT}")
    return LevelRoles(**found, watchers=watchers, maze=maze)


def _refuse_variants(found: dict[str, Firing]) -> None:
    high, goal, low, action, trainer = (found[role] for role in ("high", "goal", "low", "action", "trainer"))
    variants = {
        f"{goal.id}: goals={goal.params['goals']!r}": goal.params["goals"] != "rooms",
        f"{low.id}: network={low.params['network']!r}": low.params["network"] != "mlp",
        f"{low.id}: a deterministic agent": low.params["deterministic"],
        f"{low.id}: normalize_obs": low.params["normalize_obs"],
        f"{low.id}: action_space={low.params['action_space']!r}": low.params["action_space"] != "discrete",
        f"{action.id}: mode={action.params['mode']!r}": action.params["mode"] != "none",
        f"{trainer.id}: normalize_reward": trainer.params["normalize_reward"],
        f"{high.id}: a rollout_steps that is not the trainer's": high.params["rollout_steps"]
        != trainer.params["rollout_steps"],
    }
    for what, refused in variants.items():
        if refused:
            raise GraphError(f"{what} does not stand alone in a hierarchy; {AS_SCRIPT}")


def own_task(env_id: str, backend: str, id: str, picture: tuple[int, ...] | None = None) -> Any:
    """Return the numpy definition of a built-in environment; None for one of Gymnasium's, with a row or `picture`."""
    if picture is None and backend != "gymnasium" and env_id in own_worlds():
        world = definition(env_id, 1) if env_id in IN_KERNEL else make_world(env_id, 1)
        if not isinstance(world, Streams) or world.reset(0).action_mask is not None or not _is_default(world.task):
            raise GraphError(f"{id}: {env_id} is a world of surefoot's; {AS_SCRIPT}")
        return world.task
    if backend not in ("auto", "gymnasium"):
        raise GraphError(f"{id}: backend={backend!r} needs surefoot; use 'gymnasium', or export as a script")
    box, start = _shown(env_id)
    wanted = picture if picture is not None else box.shape if box is not None and len(box.shape) == 1 else None
    if box is None or start or box.shape != wanted or (picture is None and box.dtype != "float32"):
        raise GraphError(f"{id}: {env_id} shows more than one row of numbers; {AS_SCRIPT}")
    return None


def _is_default(task: Any) -> bool:
    """True if calling the task's class without arguments makes an equal task, as the program does."""
    try:
        return repr(vars(type(task)())) == repr(vars(task))
    except TypeError:
        return False


def _shown(env_id: str) -> tuple[Box | None, int]:
    """Return what Gymnasium's env shows, None if that is more than one thing; and the first of its actions."""
    world = make_world(env_id, 1, backend="gymnasium")
    parts, start = dict(world.observation), getattr(world.action, "start", 0)
    world.close()
    return (parts["obs"] if set(parts) == {"obs"} else None), start


def picture_of(shape: LoopRoles) -> Box | None:
    """Return what the agent sees through convolutions; None where it is a row of numbers."""
    agent, env = shape.agent, shape.worlds[0]
    size = agent.params["input_size"]
    if not isinstance(size, tuple):
        return None
    if is_atari(env.params["env_id"]):
        raise GraphError(f"{env.id}: Atari's games are prepared by surefoot; {AS_SCRIPT}")
    box, _ = _shown(env.params["env_id"])
    if box is None or box.shape != size or image_kind(box, "auto", "obs") is None:
        raise GraphError(
            f"{agent.id}: input_size is {list(size)}, which is no picture that {env.params['env_id']} shows; {AS_SCRIPT}"
        )
    return box
