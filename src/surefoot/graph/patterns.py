"""The wirings of the seed, built in Python: the plain loop, several environments, one policy above another."""

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
ROLES = {
    "env": "Environment",
    "either": "OR",
    "agent": "PPOAgentNode",
    "action": "ActionProcessor",
    "step": "Step",
    "trainer": "PPOTrainerNode",
}


def connect_plain(graph: Graph, ids: Mapping[str, str] | None = None) -> None:
    """Draw the edges of the plain loop between nodes of these names."""
    for source, target, delay in PLAIN:
        ends = [end.partition(".") for end in (source, target)]
        named = [f"{(ids or {}).get(node, node)}.{port}" for node, _, port in ends]
        graph.connect(named[0], named[1], delay)


def several_envs(
    name: str,
    *,
    envs: Sequence[Mapping[str, Any]],
    agent: Mapping[str, Any],
    action: Mapping[str, Any],
    trainer: Mapping[str, Any],
    total_steps: int,
    about: str = "",
) -> Graph:
    """Env1 … EnvK with an OR each, one batch to one agent, and the actions split again."""
    graph = Graph(name, about=about)
    graph.run.total_steps = total_steps
    letters = "abcdefgh"[: len(envs)]
    graph.add("see", "Batch", (440, 200))
    graph.add("agent", "PPOAgentNode", (640, 200), **agent)
    graph.add("action", "ActionProcessor", (860, 200), **action)
    graph.add("share", "Split", (1060, 200), sizes=[env["num_envs"] for env in envs])
    graph.add("trainer", "PPOTrainerNode", (1700, 200), **trainer)
    gathered = {
        "rewards": "rewards",
        "terminated": "terminated",
        "truncated": "truncated",
        "after": "next_observations",
    }
    for row, batch in enumerate(gathered):
        graph.add(batch, "Batch", (1480, 100 * row))
    for k, (letter, env) in enumerate(zip(letters, envs, strict=True)):
        number = k + 1
        graph.add(f"env{number}", "Environment", (0, 160 * k), **env)
        graph.add(f"either{number}", "OR", (220, 160 * k), mode="fby")
        graph.add(f"step{number}", "Step", (1260, 160 * k))
        graph.connect(f"env{number}.observations", f"either{number}.a")
        graph.connect(f"step{number}.observations", f"either{number}.b", LATER)
        graph.connect(f"either{number}.output", f"see.{letter}")
        graph.connect(f"env{number}.sim_handle", f"step{number}.sim_handle")
        graph.connect(f"share.{letter}", f"step{number}.actions")
        for batch, port in gathered.items():
            graph.connect(f"step{number}.{port}", f"{batch}.{letter}")
    graph.connect("see.output", "agent.observations")
    graph.connect("agent.policy_output", "action.policy_output")
    graph.connect("action.actions", "share.value")
    graph.connect("see.output", "trainer.states")
    graph.connect("agent.policy_output", "trainer.policy_outputs")
    graph.connect("agent.model", "trainer.model")
    for batch, port in zip(gathered, ("rewards", "terminated", "truncated", "next_states"), strict=True):
        graph.connect(f"{batch}.output", f"trainer.{port}")
    return graph


def hierarchy(
    name: str,
    *,
    env: Mapping[str, Any],
    manager: Mapping[str, Any],
    goals: Mapping[str, Any],
    worker: Mapping[str, Any],
    trainer: Mapping[str, Any],
    total_steps: int,
    about: str = "",
) -> Graph:
    """HighLevelPPO → SubGoal → LowLevelPPO → action → step, and both learn."""
    graph = Graph(name, about=about)
    graph.run.total_steps = total_steps
    graph.add("env", "Environment", (0, 160), **env)
    graph.add("high", "HighLevelPPO", (220, 40), **manager)
    graph.add("goal", "SubGoal", (440, 120), **goals)
    graph.add("low", "LowLevelPPO", (660, 120), **worker)
    graph.add("action", "ActionProcessor", (880, 60), mode="none")
    graph.add("step", "Step", (1080, 60))
    graph.add("trainer", "PPOTrainerNode", (1320, 120), **trainer)
    for source, target, delay in (
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
    ):
        graph.connect(source, target, delay)
    return graph
