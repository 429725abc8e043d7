"""The wirings that programs can fuse or run without the library: one PPO loop, several environments, two levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from surefoot.graph.schedule import Firing, Schedule
from surefoot.graph.spec.model import ABSENT, Delay, End, Graph

LATER = Delay(ABSENT)
# Without an initial value step and trainer would wait for each other in the first tick.
READY = Delay("ready")

Wire = tuple[str, str, Delay | None]
"""(output, input, delay)"""
PLAIN = (
    ("env.observations", "either.a", None),
    ("step.observations", "either.b", LATER),
    ("either.output", "agent.observations", None),
    ("agent.policy_output", "action.policy_output", None),
    ("env.sim_handle", "step.sim_handle", None),
    ("action.actions", "step.actions", None),
    ("trainer.training_complete", "step.trigger", READY),
    ("either.output", "trainer.states", None),
    ("agent.policy_output", "trainer.policy_outputs", None),
    ("agent.model", "trainer.model", None),
    ("step.rewards", "trainer.rewards", None),
    ("step.terminated", "trainer.terminated", None),
    ("step.truncated", "trainer.truncated", None),
    ("step.next_observations", "trainer.next_states", None),
)
"""The edges of the plain loop by the roles of its six nodes."""
STARTS = (("step.dones", "agent.starts", LATER),)
"""The edge that a recurrent agent needs as well."""
ROLES = {
    "env": "Environment",
    "either": "OR",
    "agent": "PPOAgentNode",
    "action": "ActionProcessor",
    "step": "Step",
    "trainer": "PPOTrainerNode",
}


def connect_plain(graph: Graph, ids: Mapping[str, str]) -> None:
    """Add the edges of the plain loop; `ids` maps roles to nodes."""
    for source, target, delay in PLAIN:
        graph.connect(end_of(source, ids), end_of(target, ids), delay)


def end_of(text: str, ids: Mapping[str, str]) -> End:
    """Return the port that `role.port` stands for."""
    role, _, port = text.partition(".")
    return End(ids[role], port)


GATHERED = {
    "rewards": "rewards",
    "terminated": "terminated",
    "truncated": "truncated",
    "next_states": "next_observations",
}
"""{input of the trainer: output of Step} that are batched over the environments."""


def several_edges(rows: Sequence[tuple[str, str, str]], batches: Sequence[str], ids: Mapping[str, str]) -> set[Wire]:
    """Return the edges between rows of (environment, OR, step) and the nodes that they share.

    `ids` has the roles obs (Batch of observations), agent, action, split and trainer.
    """
    obs, agent, action, split, trainer = (ids[role] for role in ("obs", "agent", "action", "split", "trainer"))
    edges: set[Wire] = {
        (f"{obs}.output", f"{agent}.observations", None),
        (f"{agent}.policy_output", f"{action}.policy_output", None),
        (f"{action}.actions", f"{split}.value", None),
        (f"{obs}.output", f"{trainer}.states", None),
        (f"{agent}.policy_output", f"{trainer}.policy_outputs", None),
        (f"{agent}.model", f"{trainer}.model", None),
        *((f"{batch}.output", f"{trainer}.{port}", None) for batch, port in zip(batches, GATHERED, strict=True)),
    }
    for letter, (env, either, step) in zip("abcdefgh", rows, strict=False):
        edges |= {
            (f"{env}.observations", f"{either}.a", None),
            (f"{step}.observations", f"{either}.b", LATER),
            (f"{either}.output", f"{obs}.{letter}", None),
            (f"{env}.sim_handle", f"{step}.sim_handle", None),
            (f"{split}.{letter}", f"{step}.actions", None),
            *((f"{step}.{p}", f"{b}.{letter}", None) for b, p in zip(batches, GATHERED.values(), strict=True)),
        }
    return edges


LEVELS: tuple[Wire, ...] = (
    ("env.sim_handle", "high.sim_handle", None),
    ("trainer.training_complete", "high.trigger", LATER),
    ("env.sim_handle", "goal.sim_handle", None),
    ("high.manager", "goal.manager", None),
    ("high.learned", "goal.renew", None),
    ("env.observations", "goal.first", None),
    ("step.observations", "goal.observations", LATER),
    ("goal.observations", "low.observations", None),
    ("low.policy_output", "action.policy_output", None),
    ("goal.sim_handle", "step.sim_handle", None),
    ("action.actions", "step.actions", None),
    ("goal.observations", "trainer.states", None),
    ("low.policy_output", "trainer.policy_outputs", None),
    ("low.model", "trainer.model", None),
    ("step.rewards", "trainer.rewards", None),
    ("step.terminated", "trainer.terminated", None),
    ("step.truncated", "trainer.truncated", None),
    ("step.next_observations", "trainer.next_states", None),
)
"""The edges of two levels by the roles of their seven nodes."""
LEVEL_ROLES = {
    "env": "Environment",
    "high": "HighLevelPPO",
    "goal": "SubGoal",
    "low": "LowLevelPPO",
    "action": "ActionProcessor",
    "step": "Step",
    "trainer": "PPOTrainerNode",
}


def plain_roles(plan: Schedule, *, recurrent: bool = False, modes: Sequence[str] = ("clip",)) -> dict[str, str] | None:
    """Return {role: node} if the graph is the plain loop, else None.

    It is if six nodes are wired as `PLAIN`, act in a way that the collector knows, and no other node looks into a rollout.
    `modes` are those of the ActionProcessor that are known for continuous actions.
    """
    nodes = by_role(plan, ROLES)
    if nodes is None:
        return None
    ids = {role: each.id for role, each in nodes.items()}
    agent, discrete = nodes["agent"].params, nodes["agent"].params["action_space"] == "discrete"
    # The collector samples and clips by itself, so other modes must run node by node.
    known = (
        nodes["either"].params["mode"] == "fby"
        and not agent["deterministic"]
        and (agent["network"] in ("gru", "lstm")) == recurrent
        and nodes["action"].params["mode"] in (("none",) if discrete else modes)
    )
    if not known or not is_wired(plan, ids, (*PLAIN, *(STARTS if recurrent else ()))):
        return None
    others = [each for each in plan.firings if each.id not in ids.values()]
    return ids if all(_fires_with_updates(each, ids) for each in others) else None


def by_role(plan: Schedule, roles: Mapping[str, str]) -> dict[str, Firing] | None:
    """Return the node of each role's type; None unless there is exactly one of each."""
    nodes = {role: [each for each in plan.firings if each.declared.name == type] for role, type in roles.items()}
    return {role: each[0] for role, each in nodes.items()} if all(len(each) == 1 for each in nodes.values()) else None


def edges_into(plan: Schedule, ids: Sequence[str]) -> set[tuple[End, End, Delay | None]]:
    """Return (source, target, delay) of all edges into these nodes."""
    return {
        (each.source, End(firing.id, each.port.name), each.edge.delay)
        for firing in plan.firings
        if firing.id in ids
        for each in firing.inputs
        if each.edge is not None and each.source is not None
    }


def is_wired(plan: Schedule, ids: Mapping[str, str], wires: Sequence[Wire]) -> bool:
    """Return whether the edges into these nodes are exactly `wires`."""
    expected = {(end_of(source, ids), end_of(target, ids), delay) for source, target, delay in wires}
    return edges_into(plan, list(ids.values())) == expected


def _fires_with_updates(firing: Firing, ids: Mapping[str, str]) -> bool:
    """Return whether a node fires with the updates, or once before them, and reads nothing inside a rollout."""
    outputs = ("training_complete", "loss_info", "episodes", "learner")
    allowed = {End(ids["agent"], "model"), *(End(ids["trainer"], name) for name in outputs)}
    # Code may read or change anything, so it always runs tick by tick.
    if firing.declared.name == "Code" or firing.when == "tick":
        return False
    inside = [each for each in firing.inputs if each.source is not None and each.source.node in ids.values()]
    for each in firing.inputs:
        if each.source is not None and (each.edge is None or each.edge.delay is not None or each.held):
            return False
    return all(each.source in allowed for each in inside) and (firing.when == "there" or not inside)
