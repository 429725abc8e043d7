"""What ComfyUI's editor draws and a graph here does without: reroutes, inputs in any order, values without names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from surefoot.data.kinds import as_list, as_mapping
from surefoot.graph.spec.model import Edge, End, Graph

# The parameters of DNNE's panels, in their order: a workflow stores values without names.
WIDGETS: dict[str, tuple[str, ...]] = {
    "IsaacGymEnvNode": (
        *("env_name", "num_envs", "isaac_gym_path", "isaac_gym_envs_path", "headless", "device", "physics_engine"),
    ),
    "PPOAgentNode": (
        *("hidden_sizes", "activation", "action_space", "action_dim", "learning_rate", "deterministic", "init_log_std"),
    ),
    "PPOTrainerNode": (
        *("horizon_length", "num_epochs", "minibatch_size", "gamma", "gae_lambda", "clip_param", "value_coef"),
        *("entropy_coef", "learning_rate", "max_grad_norm"),
        *("checkpoint_enabled", "checkpoint_trigger_type", "checkpoint_trigger_value"),
    ),
    "CartpoleActionNode": ("max_push_effort",),
    **dict.fromkeys(("FloatConstant", "IntConstant", "StringConstant"), ("value",)),
    "PrintValue": ("prefix",),
}
# As far as a graph's own layout reaches.
MOST_PLACE = 1e9
# Ports that DNNE called otherwise in its first workflows.
PORTS = {"network_output": "policy_output"}
# Of LiteGraph: never, and bypass.
MODES = {2: "mute", 4: "bypass"}
NOTES = ("Note", "MarkdownNote")
"""Nodes of the editor without ports."""


def remove_reroutes(graph: Graph) -> Iterator[str]:
    """Connect what reroutes join; yield a note for each."""
    reroutes = {id for id, node in graph.nodes.items() if node.type == "Reroute"}
    into = {edge.target.node: edge.source for edge in graph.edges if edge.target.node in reroutes}
    edges: list[Edge] = []
    for edge in graph.edges:
        source, passed = edge.source, set[str]()
        while source.node in into and source.node not in passed:
            passed.add(source.node)
            source = into[source.node]
        if edge.target.node not in reroutes and source.node not in reroutes:
            edges.append(Edge(source, edge.target))
    graph.edges = edges
    for id in sorted(reroutes):
        graph.remove(id)
        yield f"{id}: a reroute; its ends are connected directly"


def put_first_values_first(graph: Graph) -> Iterator[str]:
    """Let each OR begin with the environment: DNNE's takes whichever input comes, `fby` begins with a."""
    for id in [id for id, node in graph.nodes.items() if node.type == "OR"]:
        edges = sorted(graph.into(id).values(), key=lambda edge: edge.target.port)
        ordered = sorted(edges, key=lambda edge: graph.nodes[edge.source.node].type == "Step")
        if ordered != edges:
            sources: dict[End, End] = {old.target: new.source for old, new in zip(edges, ordered, strict=True)}
            graph.edges = [Edge(sources.get(edge.target, edge.source), edge.target) for edge in graph.edges]
            yield f"{id}: {ordered[0].source} is the first value; the inputs are in another order"


def is_api_format(content: Mapping[str, Any]) -> bool:
    """Return whether an object looks like a prompt of ComfyUI's API: nodes by number, without positions."""
    return bool(content) and all("class_type" in (as_mapping(each) or ()) for each in content.values())


def type_of(entry: Any) -> str:
    return str((as_mapping(entry) or {}).get("type"))


def pair_of(content: Any) -> tuple[float, float] | None:
    """Return two numbers, which some versions store as a list and others by name."""
    named = as_mapping(content)
    pair = as_list(content) if named is None else list(named.values())
    if pair is None or len(pair) < 2 or not all(isinstance(x, int | float) and abs(x) < MOST_PLACE for x in pair[:2]):
        return None
    return float(pair[0]), float(pair[1])
