"""Type and clock inference of the language-model nodes. Running them needs surefoot[lm]."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.graph.nodes.catalogue import declare
from surefoot.graph.spec.types import CONST, TICK, Type, tensor


def _rows(inputs: Mapping[str, Type], port: str) -> int | str:
    shape = inputs.get(port, Type()).shape
    return shape[0] if shape else "N"


NODES = declare(
    "language",
    PromptSource={
        "infer": lambda params, inputs: {"prompts": Type("prompts", shape=(params["batch"],))},
        "streams": lambda params: ("batch", 1),
    },
    LMSampler={
        "infer": lambda params, inputs: {"responses": Type("responses", shape=(_rows(inputs, "prompts"),))},
        "clocks": lambda params, inputs: (TICK, {"responses": TICK, "language": CONST}),
    },
    RewardModel={"infer": lambda params, inputs: {"scores": tensor("float64", _rows(inputs, "responses"))}},
)
