"""Which graphs can be exported as standalone programs: one PPO loop over one or several environments, or two levels."""

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
from surefoot.graph.schedule import Firing, Schedule
from surefoot.graph.spec.model import End, as_end
from surefoot.graph.wiring import (
    GATHERED,
    LEVEL_ROLES,
    LEVELS,
    by_role,
    edges_into,
    is_wired,
    plain_roles,
    several_edges,
)
from surefoot.nets.images import image_kind

AS_SCRIPT = "export this graph as a script"
# Programs do not contain the simulator of a town, the tools and the language models: a script imports them.
BOUND = ("Town", "Tools", "Language")
# Modes of the ActionProcessor that a program has for continuous actions.
MODES = ("clip", "scale")
WATCHERS = {
    "Print": {"value": "loss_info"},
    "Recorder": {"loss_info": "loss_info", "episodes": "episodes"},
    "Checkpoint": {"trigger": "training_complete", "learner": "learner"},
}
"""{node type: {input: output of the trainer}} of what every program does anyway, each at most once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopRoles:
    """A PPO loop over one environment or several."""

    worlds: tuple[Firing, ...]
    agent: Firing
    action: Firing
    trainer: Firing
    plumbing: tuple[Firing, ...]
    """ORs, steps, batches and splits, which a loop in plain Python does not need."""
    watchers: tuple[Firing, ...] = ()
    """Print, Recorder and Checkpoint nodes behind the trainer."""


def shape_of(plan: Schedule) -> LoopRoles:
    """Return the roles of the nodes; raise `GraphError` with the node that cannot be part of a standalone program."""
    by_id = {each.id: each for each in plan.firings}
    roles = plain_roles(plan, modes=MODES) or plain_roles(plan, recurrent=True, modes=MODES)
    if roles is not None:
        nodes = {role: by_id[id] for role, id in roles.items()}
        shape = LoopRoles(
            worlds=(nodes["env"],),
            agent=nodes["agent"],
            action=nodes["action"],
            trainer=nodes["trainer"],
            plumbing=(nodes["either"], nodes["step"]),
            watchers=watchers_of([each for each in plan.firings if each.id not in roles.values()], roles["trainer"]),
        )
    else:
        shape = _several(plan, by_id)
    agent = shape.agent.params
    size = agent["input_size"]
    picture = agent["network"] == "cnn" and isinstance(size, tuple)
    if not (isinstance(size, int) or picture) or not isinstance(agent["output_size"], int):
        raise GraphError(
            f"{shape.agent.id}: a standalone program takes one row of numbers or one picture as observation and has one "
            f"action; {AS_SCRIPT}"
        )
    return shape


def _refusal(firing: Firing) -> GraphError:
    type = firing.declared
    if type.category in BOUND:
        why = f"{type.name} is a part of surefoot ({type.calls}), which a standalone program does not have"
    else:
        why = f"{type.name} cannot be part of a standalone program, which records and saves by itself: remove the node"
    return GraphError(f"{firing.id}: {why}, or {AS_SCRIPT}" if "remove" in why else f"{firing.id}: {why}; {AS_SCRIPT}")


def watchers_of(nodes: list[Firing], trainer: str) -> tuple[Firing, ...]:
    """Return the nodes in the order of `WATCHERS`; raise `GraphError` for a node that is none of them."""
    for each in nodes:
        expected = {port: End(trainer, output) for port, output in WATCHERS.get(each.declared.name, {}).items()}
        if not expected or {i.port.name: i.source for i in each.inputs if i.source is not None} != expected:
            raise _refusal(each)
    names = [each.declared.name for each in nodes]
    if len(set(names)) < len(names):
        raise _refusal(nodes[-1])
    return tuple(sorted(nodes, key=lambda each: list(WATCHERS).index(each.declared.name)))


def _several(plan: Schedule, by_id: dict[str, Firing]) -> LoopRoles:
    """Return the roles of a loop over several environments that is wired as `wiring.several_edges`."""
    allowed = {"Environment", "OR", "Step", "Batch", "Split", "PPOAgentNode", "ActionProcessor", "PPOTrainerNode"}
    for each in plan.firings:
        if each.declared.name not in allowed and each.declared.name not in WATCHERS:
            raise _refusal(each)
    single = by_role(plan, {"agent": "PPOAgentNode", "action": "ActionProcessor", "trainer": "PPOTrainerNode"})
    if single is None:
        raise GraphError(f"a standalone program has one agent, one ActionProcessor and one trainer; {AS_SCRIPT}")
    agent, action, trainer = single["agent"], single["action"], single["trainer"]
    if agent.params["deterministic"] or action.params["mode"] not in ("none", *MODES):
        raise GraphError(
            f"{action.id}: a standalone program has neither mode={action.params['mode']!r} nor deterministic agents; "
            f"{AS_SCRIPT}"
        )

    def source(id: str, port: str) -> str:
        end = next((each.source for each in by_id[id].inputs if each.port.name == port), None)
        if end is None:
            raise GraphError(f"{id}: {port} is not connected, so this wiring cannot be standalone; {AS_SCRIPT}")
        return end.node

    # Follow the edges upstream to find the node of each role, then compare all edges with the expected ones.
    obs = source(agent.id, "observations")
    rows: list[tuple[str, str, str]] = []
    for letter in [each.port.name for each in by_id[obs].inputs if each.source is not None]:
        either = source(obs, letter)
        rows.append((source(either, "a"), either, source(either, "b")))
    batches = [source(trainer.id, port) for port in GATHERED]
    split = source(rows[0][2], "actions")
    ids = {"obs": obs, "agent": agent.id, "action": action.id, "split": split, "trainer": trainer.id}
    expected = {(as_end(a), as_end(b), delay) for a, b, delay in several_edges(rows, batches, ids)}
    watchers = [each for each in plan.firings if each.declared.name in WATCHERS]
    if edges_into(plan, [each.id for each in plan.firings if each not in watchers]) != expected:
        raise GraphError(f"this wiring cannot be standalone; {AS_SCRIPT}")
    order = [*(row[1] for row in rows), *(row[2] for row in rows), obs, *batches, split]
    return LoopRoles(
        worlds=tuple(by_id[row[0]] for row in rows),
        agent=agent,
        action=action,
        trainer=trainer,
        plumbing=tuple(by_id[id] for id in order),
        watchers=watchers_of(watchers, trainer.id),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelRoles:
    """Two policies and the maze that they act in."""

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
    """Return the roles of two levels, or None if there is no manager; raise `GraphError` if they cannot be standalone."""
    if not any(each.declared.name == LEVEL_ROLES["high"] for each in plan.firings):
        return None
    nodes = by_role(plan, LEVEL_ROLES)
    if nodes is None or not is_wired(plan, {role: each.id for role, each in nodes.items()}, LEVELS):
        raise GraphError(f"this wiring of two policies cannot be standalone; {AS_SCRIPT}")
    watchers = watchers_of([each for each in plan.firings if each not in nodes.values()], nodes["trainer"].id)
    supported = {
        ("goal", "goals"): "rooms",
        ("low", "network"): "mlp",
        ("low", "deterministic"): False,
        ("low", "normalize_obs"): False,
        ("low", "action_space"): "discrete",
        ("action", "mode"): "none",
        ("trainer", "normalize_reward"): False,
        ("high", "rollout_steps"): nodes["trainer"].params["rollout_steps"],
    }
    for (role, param), value in supported.items():
        if nodes[role].params[param] != value:
            raise GraphError(
                f"{nodes[role].id}: {param}={nodes[role].params[param]!r} cannot be standalone in a hierarchy, only {value!r}; "
                f"{AS_SCRIPT}"
            )
    env_id = nodes["env"].params["env_id"]
    maze = getattr(make_world(env_id, 1), "task", None) if env_id in own_worlds() else None
    # Programs make the maze without arguments: the default has nine rooms.
    if not isinstance(maze, LongMaze) or maze.rooms > 9:
        raise GraphError(
            f"{nodes['env'].id}: only a maze of up to nine rooms can be standalone in a hierarchy; {AS_SCRIPT}"
        )
    return LevelRoles(**nodes, watchers=watchers, maze=maze)


def own_task(env_id: str, backend: str, id: str, picture: tuple[int, ...] | None = None) -> Any:
    """Return the numpy definition of a built-in environment; None for one of Gymnasium's, with a row or `picture`."""
    if picture is None and backend != "gymnasium" and env_id in own_worlds():
        world = definition(env_id, 1) if env_id in IN_KERNEL else make_world(env_id, 1)
        if not isinstance(world, Streams) or world.reset(0).action_mask is not None or not _is_default(world.task):
            raise GraphError(f"{id}: {env_id} is a built-in environment that cannot be copied; {AS_SCRIPT}")
        return world.task
    if backend not in ("auto", "gymnasium"):
        raise GraphError(f"{id}: backend={backend!r} needs surefoot; use 'gymnasium', or export this graph as a script")
    box, start = _observation(env_id)
    expected = picture if picture is not None else box.shape if box is not None and len(box.shape) == 1 else None
    if box is None or start or box.shape != expected or (picture is None and box.dtype != "float32"):
        raise GraphError(f"{id}: {env_id} has other observations than one row of numbers; {AS_SCRIPT}")
    return None


def _is_default(task: Any) -> bool:
    """Return whether the task equals one made without arguments, as programs make it."""
    try:
        return repr(vars(type(task)())) == repr(vars(task))
    except TypeError:
        return False


def _observation(env_id: str) -> tuple[Box | None, int]:
    """Return the observation of a Gymnasium environment, None if it has several parts, and the first action."""
    world = make_world(env_id, 1, backend="gymnasium")
    parts, start = dict(world.observation), getattr(world.action, "start", 0)
    world.close()
    return (parts["obs"] if set(parts) == {"obs"} else None), start


def picture_of(shape: LoopRoles) -> Box | None:
    """Return the space of the picture that the agent observes; None for a row of numbers."""
    agent, env = shape.agent, shape.worlds[0]
    size = agent.params["input_size"]
    if not isinstance(size, tuple):
        return None
    if is_atari(env.params["env_id"]):
        raise GraphError(f"{env.id}: Atari games are preprocessed by surefoot; {AS_SCRIPT}")
    box, _ = _observation(env.params["env_id"])
    if box is None or box.shape != size or image_kind(box, "auto", "obs") is None:
        raise GraphError(
            f"{agent.id}: input_size is {list(size)}, which is not the picture of {env.params['env_id']}; {AS_SCRIPT}"
        )
    return box
