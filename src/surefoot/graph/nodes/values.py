"""Constants and arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np


class _Constant:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self) -> Any:
        return self.value


class FloatConstant(_Constant):
    """A number."""


class IntConstant(_Constant):
    """A whole number."""


class StringConstant(_Constant):
    """Text."""


class FlagConstant(_Constant):
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


class Math:
    """numpy's function of that name; the second number is `other` where nothing is connected."""

    def __init__(self, operation: str = "add", other: float = 0.0) -> None:
        self.one, self.two = _ONE.get(operation), None if operation in _ONE else getattr(np, operation)
        self.other = other

    def __call__(self, a: Any, b: Any = None) -> Any:
        with np.errstate(all="ignore"):
            if self.one is not None:
                return self.one(a)
            assert self.two is not None
            return self.two(a, self.other if b is None else b)


class Pick:
    """One entry of a table; None where it is not there."""

    def __init__(self, key: str) -> None:
        self.key = key

    def __call__(self, table: dict[str, Any]) -> Any:
        return table.get(self.key)


class Condition:
    """Says "complete" where the number is beyond the limit, else nothing."""

    def __init__(self, test: str = "above", limit: float = 0.0) -> None:
        self.above, self.limit = test == "above", limit

    def __call__(self, value: Any) -> str | None:
        return "complete" if (value > self.limit if self.above else value < self.limit) else None
