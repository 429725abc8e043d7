"""Clock inference of evaluation and checkpoints; Recorder, Plot and Print need none."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.graph.nodes.catalogue import declare
from surefoot.graph.spec.types import TICK, Clock, when


def _every_nth(inputs: Mapping[str, Clock], *outputs: str) -> tuple[Clock, dict[str, Clock]]:
    # The node is called with every trigger but acts on every n-th, so its outputs have their own clock.
    return inputs.get("trigger", TICK), dict.fromkeys(outputs, when(outputs[0]))


NODES = declare(
    "inspection",
    Evaluation={"clocks": lambda params, inputs: _every_nth(inputs, "mean_return", "std_return")},
    Checkpoint={"clocks": lambda params, inputs: _every_nth(inputs, "saved")},
)
