"""Is this the plain loop? Six nodes wired as PPO always is, and nobody who looks into it within a rollout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from surefoot.graph.schedule import Firing, Schedule
from surefoot.graph.spec.model import End
from surefoot.graph.wiring import PLAIN, ROLES, STARTS, Wire

REMEMBERING = ("gru", "lstm")


def plain_roles(plan: Schedule, *, remembers: bool = False) -> dict[str, str] | None:
    """{role: node} of the plain loop, or None where the graph is another one; `remembers` if the agent is to have a memory."""
    found = by_role(plan, ROLES)
    if found is None:
        return None
    ids = {role: each.id for role, each in found.items()}
    if not is_wired(plan, ids, (*PLAIN, *(STARTS if remembers else ()))) or not _simple(found, remembers):
        return None
    return ids if all(_looks_later(plan, each, ids) for each in plan.firings if each.id not in ids.values()) else None


def by_role(plan: Schedule, roles: Mapping[str, str]) -> dict[str, Firing] | None:
    """The one node of each type; None where there is none of it, or more than one."""
    found: dict[str, Firing] = {}
    for role, type in roles.items():
        nodes = [each for each in plan.firings if each.declared.name == type]
        if len(nodes) != 1:
            return None
        found[role] = nodes[0]
    return found


def is_wired(plan: Schedule, ids: Mapping[str, str], wires: Sequence[Wire]) -> bool:
    """True if the edges among these nodes are exactly `wires`, and nothing else leads into them."""
    wanted = {(_end(source, ids), _end(target, ids), delay) for source, target, delay in wires}
    those = set(ids.values())
    given = {
        (each.source, End(firing.id, each.port.name), each.edge.delay)
        for firing in plan.firings
        if firing.id in those
        for each in firing.inputs
        if each.edge is not None
    }
    return given == wanted


def _end(text: str, ids: Mapping[str, str]) -> End:
    role, _, port = text.partition(".")
    return End(ids[role], port)


def _simple(found: dict[str, Firing], remembers: bool) -> bool:
    agent, action, either = found["agent"].params, found["action"].params, found["either"].params
    discrete = agent["action_space"] == "discrete"
    return (
        either["mode"] == "fby"
        and not agent["deterministic"]
        and (agent["network"] in REMEMBERING) == remembers
        and action["mode"] == ("none" if discrete else "clip")
    )


def _looks_later(plan: Schedule, firing: Firing, ids: dict[str, str]) -> bool:
    """True for a node that fires with the updates, or once before them."""
    allowed = {
        End(ids["agent"], "model"),
        *(End(ids["trainer"], name) for name in ("training_complete", "loss_info", "episodes", "learner")),
    }
    if firing.declared.name == "Code" or firing.when == "tick":
        return False
    for each in firing.inputs:
        if each.source is None:
            continue
        if each.edge is None or each.edge.delay is not None or each.held:
            return False
        if each.source.node in ids.values() and each.source not in allowed:
            return False
    return firing.when == "there" or not any(
        each.source is not None and each.source.node in ids.values() for each in firing.inputs
    )
