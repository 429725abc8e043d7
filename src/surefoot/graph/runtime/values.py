"""Constants and arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np

from surefoot.graph.runtime.base import COMPLETE, RuntimeNode


class FloatConstantNode(RuntimeNode):
    """The value itself."""

    def __call__(self) -> Any:
        return self.params.value


class IntConstantNode(FloatConstantNode):
    """A whole number."""


class StringConstantNode(FloatConstantNode):
    """Text."""


class FlagConstantNode(FloatConstantNode):
    """True or false."""


_ONE = {
    "mean": np.mean,
    "sum": np.sum,
    "abs": np.abs,
    "negative": np.negative,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
}


class MathNode(RuntimeNode):
    """numpy's function of that name; the second number is `other` where nothing is connected."""

    def __call__(self, a: Any, b: Any = None) -> Any:
        name = self.params.operation
        with np.errstate(all="ignore"):
            if name in _ONE:
                return _ONE[name](a)
            return getattr(np, name)(a, self.params.other if b is None else b)


class PickNode(RuntimeNode):
    """One entry of a table; None where it is not there."""

    def __call__(self, table: dict[str, Any]) -> Any:
        return table.get(self.params.key)


class ConditionNode(RuntimeNode):
    """Fires its trigger where the number is beyond the limit."""

    def __call__(self, value: Any) -> str | None:
        limit = self.params.limit
        return COMPLETE if (value > limit if self.params.test == "above" else value < limit) else None
