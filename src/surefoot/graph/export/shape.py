"""Which part of a graph is which, for a program that stands alone: worlds, agent, action, trainer, and the plumbing."""

from __future__ import annotations

from dataclasses import dataclass

from surefoot.errors import GraphError
from surefoot.graph.export.plain import plain_roles
from surefoot.graph.schedule import Firing, Schedule
from surefoot.graph.spec.model import End


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A PPO loop over one environment or several side by side."""

    worlds: tuple[Firing, ...]
    agent: Firing
    action: Firing
    trainer: Firing
    plumbing: tuple[Firing, ...]
    """ORs, steps, batches and splits, which a loop in plain Python does not need."""


def shape_of(plan: Schedule) -> Shape:
    """The shape, or a GraphError that says what does not stand alone."""
    by_id = {each.id: each for each in plan.firings}
    roles = plain_roles(plan)
    if roles is not None:
        if len(roles) < len(by_id):
            extra = next(id for id in by_id if id not in roles.values())
            raise GraphError(_refused(by_id[extra]))
        shape = Shape(
            worlds=(by_id[roles["env"]],),
            agent=by_id[roles["agent"]],
            action=by_id[roles["action"]],
            trainer=by_id[roles["trainer"]],
            plumbing=(by_id[roles["either"]], by_id[roles["step"]]),
        )
    else:
        shape = _several(plan, by_id)
    agent = shape.agent.params
    if (
        agent["network"] != "mlp"
        or not isinstance(agent["input_size"], int)
        or not isinstance(agent["output_size"], int)
    ):
        raise GraphError(
            f"{shape.agent.id}: only a plain network of numbers stands alone; export this graph as a script"
        )
    return shape


def _refused(firing: Firing) -> str:
    return (
        f"{firing.id}: {firing.declared.name} does not stand alone; the program has a record and checkpoints of its own: take "
        "the node out, or export this graph as a script"
    )


def _several(plan: Schedule, by_id: dict[str, Firing]) -> Shape:
    allowed = {"Environment", "OR", "Step", "Batch", "Split", "PPOAgentNode", "ActionProcessor", "PPOTrainerNode"}
    kinds: dict[str, list[Firing]] = {}
    for each in plan.firings:
        if each.declared.name not in allowed:
            raise GraphError(_refused(each))
        kinds.setdefault(each.declared.name, []).append(each)
    for name in ("PPOAgentNode", "ActionProcessor", "PPOTrainerNode"):
        if len(kinds.get(name, [])) != 1:
            raise GraphError(f"a program that stands alone has one {name}; this graph has {len(kinds.get(name, []))}")
    agent, action, trainer = (kinds[name][0] for name in ("PPOAgentNode", "ActionProcessor", "PPOTrainerNode"))
    worlds = _rows(by_id, agent, action, trainer)
    if agent.params["deterministic"] or action.params["mode"] not in ("none", "clip"):
        raise GraphError(
            f"{action.id}: {action.params['mode']} and deterministic agents do not stand alone; export as a script"
        )
    plumbing = [each for name in ("OR", "Step", "Batch", "Split") for each in kinds.get(name, [])]
    return Shape(worlds=worlds, agent=agent, action=action, trainer=trainer, plumbing=tuple(plumbing))


def _rows(by_id: dict[str, Firing], agent: Firing, action: Firing, trainer: Firing) -> tuple[Firing, ...]:
    """The environments in the order of their rows, if everything is wired as `patterns.several_envs` does it."""

    def source(firing: Firing, port: str) -> End | None:
        return next((each.source for each in firing.inputs if each.port.name == port), None)

    def refuse(why: str) -> GraphError:
        return GraphError(f"this wiring does not stand alone ({why}); export this graph as a script")

    see = source(agent, "observations")
    if see is None or by_id[see.node].declared.name != "Batch" or source(trainer, "states") != see:
        raise refuse("the agent and the trainer do not see one batch")
    letters = [each.port.name for each in by_id[see.node].inputs if each.source is not None]
    worlds: list[Firing] = []
    steps: list[str] = []
    for letter in letters:
        either = source(by_id[see.node], letter)
        first = (
            source(by_id[either.node], "a") if either is not None and by_id[either.node].declared.name == "OR" else None
        )
        step = source(by_id[either.node], "b") if first is not None and either is not None else None
        if first is None or step is None or by_id[first.node].declared.name != "Environment":
            raise refuse(f"row {letter} is not an environment with an OR")
        share = source(by_id[step.node], "actions")
        handle = source(by_id[step.node], "sim_handle")
        if share is None or share.port != letter or handle is None or handle.node != first.node:
            raise refuse(f"row {letter} is not stepped with its own actions")
        if source(by_id[share.node], "value") != End(action.id, "actions"):
            raise refuse("the actions are not split as they come")
        worlds.append(by_id[first.node])
        steps.append(step.node)
    wanted = {
        "rewards": "rewards",
        "terminated": "terminated",
        "truncated": "truncated",
        "next_states": "next_observations",
    }
    for port, output in wanted.items():
        batch = source(trainer, port)
        if batch is None or [source(by_id[batch.node], letter) for letter in letters] != [
            End(step, output) for step in steps
        ]:
            raise refuse(f"{port} of the trainer is not the batch of all steps")
    if {each.port.name for each in trainer.inputs if each.source} != {*wanted, "states", "policy_outputs", "model"}:
        raise refuse("the trainer has other inputs")
    return tuple(worlds)
