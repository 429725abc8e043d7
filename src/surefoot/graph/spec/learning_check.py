"""Checks that need several nodes together: what a trainer learns from, and how much memory a loop takes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from surefoot.graph.spec.checked import Checked
from surefoot.graph.spec.declare import NodeType
from surefoot.graph.spec.model import Edge, End

# 800 MB of float32, four times that with gradients and Adam's two moments.
MOST_WEIGHTS = 200_000_000
MOST_ROLLOUT_BYTES = 16 << 30
# Published settings use 3 to 30; beyond 100 the probability ratios are clipped almost everywhere.
MANY_EPOCHS = 100


class Complaint(NamedTuple):
    """A finding without its code."""

    level: str
    node: str
    where: str
    message: str


def check_learning(
    checked: Checked, types: Mapping[str, NodeType], into: Mapping[str, Mapping[str, Edge]]
) -> Iterator[Complaint]:
    """Yield what is wrong with agents and trainers of a graph whose types fit."""
    yield from _twice(checked, types, into)
    for id in checked.order:
        if types[id].input("observations") is not None and types[id].output("policy_output") is not None:
            yield from _network(id, checked.params[id])
        if types[id].name == "PPOTrainerNode":
            agent = into[id]["policy_outputs"].source.node
            # Code and custom nodes may pass a policy's output on; what they read is only known at run time.
            if types[agent].output("model") is not None and "observations" in into[agent]:
                yield from _same_agent(id, agent, types, into)
            yield from _rollout(id, checked, into)


def _twice(
    checked: Checked, types: Mapping[str, NodeType], into: Mapping[str, Mapping[str, Edge]]
) -> Iterator[Complaint]:
    """Yield where two nodes change one environment, one network or one file in the same tick."""
    first: dict[tuple[str, Any], str] = {}
    for id in checked.order:
        kind, params = types[id].name, checked.params[id]
        if kind in ("Step", "TownStep"):
            edge = into[id]["sim_handle"]
            port, thing, advice = "sim_handle", edge.source, f"steps {edge.source.node}; add another Environment"
        elif kind == "PPOTrainerNode":
            edge = into[id]["model"]
            port, thing, advice = "model", edge.source, f"updates {edge.source.node}; a network has one trainer"
        elif kind in ("Recorder", "Checkpoint"):
            port, thing, advice = (
                "folder",
                params["folder"],
                f"writes to folder {params['folder']!r}; choose another folder",
            )
        else:
            continue
        other = first.setdefault((kind, thing), id)
        if other != id:
            yield Complaint("error", id, port, f"{other} already {advice}")


def _same_agent(
    id: str, agent: str, types: Mapping[str, NodeType], into: Mapping[str, Mapping[str, Edge]]
) -> Iterator[Complaint]:
    model, states, observed = into[id]["model"], into[id]["states"], into[agent]["observations"]
    if model.source.node != agent and types[model.source.node].output("policy_output") is not None:
        message = (
            f"the actions are those of {agent} and the network is that of {model.source.node}; a trainer updates the network "
            f"that acted. Connect {agent}.model"
        )
        yield Complaint("error", id, "model", message)
    if _origin(states, types) != _origin(observed, types) and _is_built_in(types[states.source.node]):
        message = (
            f"{agent} acted on {observed.source} and states is {states.source}; a trainer learns from what the policy "
            f"observed. Connect {observed.source}"
        )
        yield Complaint("error", id, "states", message)


def _origin(edge: Edge, types: Mapping[str, NodeType]) -> tuple[End, bool]:
    port = types[edge.source.node].output(edge.source.port)
    assert port is not None
    return End(edge.source.node, port.name), edge.delay is not None


def _is_built_in(declared: NodeType) -> bool:
    return declared.runtime.startswith("surefoot.") and declared.name != "Code"


def _network(id: str, params: Mapping[str, Any]) -> Iterator[Complaint]:
    sizes, layers = params["input_size"], (*params["hidden"], _entries(params["output_size"]))
    inputs = sum(map(_entries, sizes.values())) if isinstance(sizes, dict) else _entries(sizes)
    if params["network"] == "cnn":
        # Convolutions reduce an image to a few thousand features before the first layer.
        inputs = 0
    weights = sum(a * b for a, b in zip((inputs, *layers), layers, strict=False))
    if weights > MOST_WEIGHTS:
        message = (
            f"hidden={list(params['hidden'])} makes {weights:,} weights; at most {MOST_WEIGHTS:,} are trained here"
        )
        yield Complaint("error", id, "hidden", message)


def _rollout(id: str, checked: Checked, into: Mapping[str, Mapping[str, Edge]]) -> Iterator[Complaint]:
    params, total = checked.params[id], checked.flat.run.total_steps
    states = checked.types.get(into[id]["states"].source)
    rows = {shape[0] for _, _, shape in (states.parts if states is not None and states.parts else ())}
    streams = next((n for n in rows if isinstance(n, int)), 1)
    steps = params["rollout_steps"] * streams
    if states is not None and states.parts:
        row = sum(_entries(shape[1:]) * (1 if dtype == "uint8" else 4) for _, dtype, shape in states.parts)
        if steps * row > MOST_ROLLOUT_BYTES:
            message = f"a rollout of {steps:,} steps takes {steps * row / 1e9:,.0f} GB; lower rollout_steps or num_envs"
            yield Complaint("error", id, "rollout_steps", message)
    if steps > total:
        message = (
            f"a rollout has {steps:,} steps, more than total_steps={total:,}, so the run is one update after {steps:,} steps; "
            "lower rollout_steps or raise total_steps"
        )
        yield Complaint("lint", id, "rollout_steps", message)
    if params["epochs"] > MANY_EPOCHS:
        message = f"epochs={params['epochs']:,}: every rollout is learned from that many times; 3 to 30 are usual"
        yield Complaint("lint", id, "epochs", message)


def _entries(size: Any) -> int:
    return math.prod(n for n in size if isinstance(n, int)) if isinstance(size, tuple) else int(size)
