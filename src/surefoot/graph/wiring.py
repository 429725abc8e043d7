"""The wirings that programs can stand alone with or fuse: one PPO loop, several environments, two policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from surefoot.graph.spec.model import ABSENT, Delay, Graph

LATER = Delay(ABSENT)
READY = Delay("ready")


def ppo_loop(
    name: str,
    *,
    env: Mapping[str, Any],
    agent: Mapping[str, Any],
    action: Mapping[str, Any],
    trainer: Mapping[str, Any],
    total_steps: int,
    seed: int = 0,
    about: str = "",
) -> Graph:
    """Environment → OR → agent → action → step → trainer, and back."""
    graph = Graph(name, about=about)
    graph.run.total_steps, graph.run.seed = total_steps, seed
    graph.add("env", "Environment", (0, 120), **env)
    graph.add("either", "OR", (240, 120), mode="fby")
    graph.add("agent", "PPOAgentNode", (440, 120), **agent)
    graph.add("action", "ActionProcessor", (680, 60), **action)
    graph.add("step", "Step", (900, 60))
    graph.add("trainer", "PPOTrainerNode", (1140, 120), **trainer)
    connect_plain(graph)
    return graph


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
"""The edges of the plain loop, by the roles of its six nodes."""
STARTS = (("step.dones", "agent.starts", LATER),)
"""And for an agent with a memory: where episodes begin."""
ROLES = {
    "env": "Environment",
    "either": "OR",
    "agent": "PPOAgentNode",
    "action": "ActionProcessor",
    "step": "Step",
    "trainer": "PPOTrainerNode",
}


def connect_plain(graph: Graph, ids: Mapping[str, str] | None = None, more: Sequence[Wire] = ()) -> None:
    """Draw the edges of the plain loop between nodes of these names."""
    connect(graph, (*PLAIN, *more), ids)


def connect(graph: Graph, wires: Sequence[Wire], ids: Mapping[str, str] | None = None) -> None:
    """Draw edges that are said by roles; `ids` says which node has which."""
    for source, target, delay in wires:
        ends = [end.partition(".") for end in (source, target)]
        named = [f"{(ids or {}).get(node, node)}.{port}" for node, _, port in ends]
        graph.connect(named[0], named[1], delay)


GATHERED = {
    "rewards": "rewards",
    "terminated": "terminated",
    "truncated": "truncated",
    "next_states": "next_observations",
}
"""{input of the trainer: output of Step} that are batched."""


def several_edges(
    rows: Sequence[tuple[str, str, str]],
    batches: Sequence[str],
    *,
    see: str = "see",
    agent: str = "agent",
    action: str = "action",
    share: str = "share",
    trainer: str = "trainer",
) -> list[tuple[str, str, Delay | None]]:
    """The edges between rows of (environment, OR, step) and the nodes that all share, by these names."""
    edges: list[tuple[str, str, Delay | None]] = []
    for letter, (env, either, step) in zip("abcdefgh", rows, strict=False):
        edges += [
            (f"{env}.observations", f"{either}.a", None),
            (f"{step}.observations", f"{either}.b", LATER),
            (f"{either}.output", f"{see}.{letter}", None),
            (f"{env}.sim_handle", f"{step}.sim_handle", None),
            (f"{share}.{letter}", f"{step}.actions", None),
        ]
        edges += [
            (f"{step}.{port}", f"{batch}.{letter}", None)
            for batch, port in zip(batches, GATHERED.values(), strict=True)
        ]
    edges += [
        (f"{see}.output", f"{agent}.observations", None),
        (f"{agent}.policy_output", f"{action}.policy_output", None),
        (f"{action}.actions", f"{share}.value", None),
        (f"{see}.output", f"{trainer}.states", None),
        (f"{agent}.policy_output", f"{trainer}.policy_outputs", None),
        (f"{agent}.model", f"{trainer}.model", None),
    ]
    return edges + [(f"{b}.output", f"{trainer}.{port}", None) for b, port in zip(batches, GATHERED, strict=True)]


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
"""The edges of two policies, one above the other, by the roles of their seven nodes."""
LEVEL_ROLES = {
    "env": "Environment",
    "high": "HighLevelPPO",
    "goal": "SubGoal",
    "low": "LowLevelPPO",
    "action": "ActionProcessor",
    "step": "Step",
    "trainer": "PPOTrainerNode",
}
