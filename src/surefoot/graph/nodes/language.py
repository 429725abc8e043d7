"""Language models: prompts, a model that answers them, a reward, the price of leaving the reference, and learning.

Running them needs surefoot[lm].
"""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.graph.nodes.catalogue import declare
from surefoot.graph.spec.types import CONST, TICK, Type, tensor


def _rows(given: Mapping[str, Type], port: str) -> int | str:
    shape = given.get(port, Type()).shape
    return shape[0] if shape else "N"


NODES = declare(
    "language",
    PromptSource={
        "infer": lambda params, given: {"prompts": Type("prompts", shape=(params["batch"],))},
        "streams": lambda params: ("batch", 1),
    },
    LMSampler={
        "infer": lambda params, given: {"responses": Type("responses", shape=(_rows(given, "prompts"),))},
        "clocks": lambda params, given: (TICK, {"responses": TICK, "language": CONST}),
    },
    RewardModel={"infer": lambda params, given: {"scores": tensor("float64", _rows(given, "responses"))}},
)
