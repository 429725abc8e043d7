"""Nodes that look and keep: evaluation, record, checkpoint, plot, print."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.graph.nodes.catalogue import declare
from surefoot.graph.spec.types import TICK, Clock, when


def _sometimes(given: Mapping[str, Clock], *outputs: str) -> tuple[Clock, dict[str, Clock]]:
    fires = given.get("trigger", TICK)
    return fires, dict.fromkeys(outputs, when(outputs[0]))


NODES = declare(
    "inspection",
    Evaluation={"clocks": lambda params, given: _sometimes(given, "mean_return", "std_return")},
    Checkpoint={"clocks": lambda params, given: _sometimes(given, "saved")},
)
