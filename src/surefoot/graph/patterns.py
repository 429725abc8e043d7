"""The wirings of the seed and of every use, built in Python: each function returns a graph that holds together."""

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
    graph.add("see", "Batch", (440, 200))
    graph.add("agent", "PPOAgentNode", (640, 200), **agent)
    graph.add("action", "ActionProcessor", (860, 200), **action)
    graph.add("share", "Split", (1060, 200), sizes=[env["num_envs"] for env in envs])
    graph.add("trainer", "PPOTrainerNode", (1700, 200), **trainer)
    gathered = ("rewards", "terminated", "truncated", "after")
    for row, batch in enumerate(gathered):
        graph.add(batch, "Batch", (1480, 100 * row))
    numbers = range(1, len(envs) + 1)
    for k, env in zip(numbers, envs, strict=True):
        graph.add(f"env{k}", "Environment", (0, 160 * (k - 1)), **env)
        graph.add(f"either{k}", "OR", (220, 160 * (k - 1)), mode="fby")
        graph.add(f"step{k}", "Step", (1260, 160 * (k - 1)))
    rows = [(f"env{k}", f"either{k}", f"step{k}") for k in numbers]
    for source, target, delay in several_edges(rows, gathered):
        graph.connect(source, target, delay)
    return graph


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
    connect(graph, LEVELS)
    return graph


def town_loop(
    name: str,
    *,
    scenario: Mapping[str, Any],
    agent: Mapping[str, Any],
    trainer: Mapping[str, Any],
    total_steps: int,
    about: str = "",
) -> Graph:
    """The plain loop in a town: who is not there does not count, and quarrels are counted."""
    graph = Graph(name, about=about)
    graph.run.total_steps = total_steps
    graph.add("env", "Scenario", (0, 120), **scenario)
    graph.add("either", "OR", (240, 120), mode="fby")
    graph.add("agent", "PPOAgentNode", (440, 120), **agent)
    graph.add("action", "ActionProcessor", (680, 60), mode="none")
    graph.add("step", "TownStep", (900, 60))
    graph.add("trainer", "PPOTrainerNode", (1140, 120), **trainer)
    connect_plain(graph)
    graph.connect("step.valid", "trainer.valid")
    graph.add("conflicts", "ConflictStats", (1400, 0))
    graph.connect("trainer.training_complete", "conflicts.trigger")
    graph.connect("env.sim_handle", "conflicts.sim_handle")
    return graph


def tool_loop(
    name: str, *, queries: Mapping[str, Any], policy: Mapping[str, Any], total_steps: int, about: str = ""
) -> Graph:
    """Question → vector → tool → answer → reward → learning. No way back: what is learned is there in the next tick."""
    graph = Graph(name, about=about)
    graph.run.total_steps = total_steps
    graph.add("queries", "QuerySource", **queries)
    graph.add("encoder", "QueryEncoder")
    graph.add("tools", "ToolBox")
    graph.add("policy", "ToolPolicy", **policy)
    graph.add("runner", "ToolRunner")
    graph.add("reward", "ToolReward")
    graph.add("trainer", "ToolTrainer")
    graph.add("exam", "ToolExam")
    graph.add("told", "Print", prefix="held out, right: ")
    for source, targets in {
        "queries.queries": ("encoder.queries", "runner.queries", "reward.queries"),
        "encoder.vectors": ("policy.vectors",),
        "queries.held_out": ("exam.queries",),
        "encoder.encoder": ("tools.encoder", "policy.encoder", "exam.encoder"),
        "tools.toolbox": ("policy.toolbox", "runner.toolbox"),
        "policy.choices": ("runner.choices", "reward.choices", "trainer.choices"),
        "policy.chooser": ("trainer.chooser", "exam.chooser"),
        "runner.results": ("reward.results",),
        "reward.rewards": ("trainer.rewards",),
        "trainer.training_complete": ("exam.trigger",),
        "exam.right": ("told.value",),
    }.items():
        for target in targets:
            graph.connect(source, target)
    return graph


def language_loop(
    name: str,
    *,
    prompts: Mapping[str, Any],
    sampler: Mapping[str, Any],
    reward: Mapping[str, Any],
    kl: Mapping[str, Any],
    trainer: Mapping[str, Any],
    total_steps: int,
    about: str = "",
) -> Graph:
    """Prompts → responses → scores → the price of leaving the reference → an update, all in one tick."""
    graph = Graph(name, about=about)
    graph.run.total_steps = total_steps
    graph.add("prompts", "PromptSource", **prompts)
    graph.add("sampler", "LMSampler", **sampler)
    graph.add("reward", "RewardModel", **reward)
    graph.add("kl", "KLPenalty", **kl)
    graph.add("trainer", "LMTrainer", **trainer)
    for source, target in (
        ("prompts.prompts", "sampler.prompts"),
        ("sampler.responses", "reward.responses"),
        ("sampler.responses", "kl.responses"),
        ("reward.scores", "kl.scores"),
        ("sampler.language", "kl.language"),
        ("kl.tokens", "trainer.tokens"),
        ("sampler.language", "trainer.language"),
    ):
        graph.connect(source, target)
    return graph
