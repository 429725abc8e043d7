"""The doctor's advice as an operation on the graph: set a parameter of the node that has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surefoot.errors import GraphError
from surefoot.graph.nodes import REGISTRY
from surefoot.graph.spec.declare import Param
from surefoot.graph.spec.model import Graph
from surefoot.graph.spec.ops import Op
from surefoot.graph.spec.params import read_params

FIRST = ("PPOTrainerNode", "PPOAgentNode", "LowLevelPPO")
"""Types in the order in which they are searched for a setting."""


def remedy(graph: Graph, patch: Mapping[str, Any]) -> Op:
    """Return the operation that applies the settings. Raise `GraphError` if no node has one of them."""
    ops: list[Op] = []
    for knob, value in patch.items():
        if (place := place_of(graph, knob)) is not None:
            id, param = place
            checked = read_params(REGISTRY.get(graph.nodes[id].type), {param.name: value}, who=id)[param.name]
            ops.append({"op": "set", "id": id, "params": {param.name: param.kind.to_json(checked)}})
    if not ops:
        raise GraphError(f"no node of this graph has the setting {' or '.join(patch) or 'that would fix it'}")
    return ops[0] if len(ops) == 1 else {"op": "batch", "ops": ops}


def place_of(graph: Graph, knob: str) -> tuple[str, Param] | None:
    """Return the node and the parameter of a setting of the engine."""
    ranked = sorted(graph.nodes, key=lambda id: (FIRST.index(t) if (t := graph.nodes[id].type) in FIRST else 9, id))
    for id in ranked:
        declared = REGISTRY.find(graph.nodes[id].type)
        if declared is None or declared.name not in FIRST:
            continue
        param = declared.param(knob)
        # The agent's learning rate is only an alias; the trainer's is used.
        if param is not None and not (declared.name != "PPOTrainerNode" and param.name == "lr"):
            return id, param
    return None


def pinned_on(graph: Graph, patch: Mapping[str, Any]) -> str:
    """Return the node that a finding is shown on: the one to change, else the trainer."""
    places = [place for knob in patch if (place := place_of(graph, knob)) is not None]
    trainer = next((id for id, node in sorted(graph.nodes.items()) if node.type == "PPOTrainerNode"), "")
    return places[0][0] if places else trainer
