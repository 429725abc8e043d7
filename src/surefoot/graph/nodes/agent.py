"""The agent: an actor-critic network."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from surefoot.graph.nodes.catalogue import declare
from surefoot.graph.spec.declare import Misfit, Types
from surefoot.graph.spec.types import (
    CONST,
    Clock,
    Type,
)

MASK = "action_mask"


def _agent(params: Mapping[str, Any], given: Mapping[str, Type]) -> Types:
    seen = given.get("observations", Type("obs"))
    streams = _streams(seen)
    if seen.parts is not None:
        _check_inputs(params["input_size"], seen)
    if params["network"] in ("gru", "lstm") and "starts" not in given:
        raise Misfit(
            "starts",
            f"network is {params['network']!r}, which must know where episodes begin; connect Step.dones by a delay",
        )
    size = params["output_size"]
    if params["action_space"] == "discrete":
        dtype, row = "int64", () if isinstance(size, int) else (len(size),)
    else:
        dtype, row = "float32", (size,) if isinstance(size, int) else size
    parts = None if seen.parts is None else tuple(part for part in seen.parts if part[0] != MASK)
    return {
        "policy_output": Type("policy_output", dtype, (streams, *row), parts, seen.tags),
        "model": Type("model"),
    }


def _streams(seen: Type) -> int | str:
    return seen.parts[0][2][0] if seen.parts else "N"


def _check_inputs(wanted: Any, seen: Type) -> None:
    parts = {name: tuple(shape[1:]) for name, _, shape in seen.parts or () if name != MASK}
    sizes = wanted if isinstance(wanted, dict) else {next(iter(parts), "obs"): wanted}
    flat = {name: _flat(row) for name, row in parts.items()}
    told = next(iter(flat.values())) if len(flat) == 1 else {name: _shown(row) for name, row in parts.items()}
    if set(sizes) != set(parts):
        raise Misfit(
            "input_size", f"input_size is {wanted} but the observations have {', '.join(parts)}; set it to {told}"
        )
    for name, size in sizes.items():
        if size != parts[name] and _flat(size if isinstance(size, tuple) else (size,)) != flat[name]:
            raise Misfit(
                "input_size", f"input_size is {wanted} but the observations are {_shown(parts[name])}; set it to {told}"
            )


def _flat(row: tuple[int | str, ...]) -> int:
    return math.prod(n if isinstance(n, int) else 1 for n in row)


def _shown(row: tuple[int | str, ...]) -> Any:
    return list(row) if len(row) != 1 else row[0]


def _agent_clocks(params: Mapping[str, Any], given: Mapping[str, Clock]) -> tuple[Clock, dict[str, Clock]]:
    fires = NODES["PPOAgentNode"].firing(given)
    return fires, {"policy_output": fires, "model": CONST}


NODES = declare("agent", PPOAgentNode={"infer": _agent, "clocks": _agent_clocks})
