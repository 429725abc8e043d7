"""Merging and splitting of values, code nodes, constants and arithmetic."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from surefoot.errors import GraphError
from surefoot.graph.run.execute import execute
from surefoot.graph.runtime.base import COMPLETE, RuntimeNode
from surefoot.graph.spec.code_source import as_function


class ORNode(RuntimeNode):
    """fby: the first value, then those of the loop. priority: the input that has a value; with `queue` others wait."""

    def setup(self) -> None:
        self.queue = self.params.queue or self.params.mode == "arrival"
        self.waiting: deque[Any] = deque()

    def __call__(self, a: Any = None, b: Any = None, c: Any = None) -> Any:
        if self.params.mode == "fby":
            return a if b is None else b
        values = [value for value in (a, b, c) if value is not None]
        if not self.queue and len(values) > 1:
            raise GraphError("two values arrived in one tick; set queue to true to deliver both, one after the other")
        self.waiting.extend(values)
        return self.waiting.popleft() if self.waiting else None

    def snapshot(self) -> dict[str, Any]:
        return {"waiting": list(self.waiting)}

    def restore(self, saved: dict[str, Any]) -> None:
        self.waiting = deque(saved["waiting"])


class BatchNode(RuntimeNode):
    """The rows of all inputs, concatenated."""

    def __call__(self, *values: Any) -> Any:
        connected = [value for value in values if value is not None]
        if isinstance(connected[0], dict):
            return {name: np.concatenate([value[name] for value in connected]) for name in connected[0]}
        return np.concatenate(connected)


class SplitNode(RuntimeNode):
    """The inverse of Batch."""

    def __call__(self, value: Any) -> tuple[Any, ...]:
        ends = np.cumsum(self.params.sizes)
        cuts = [slice(int(end - size), int(end)) for end, size in zip(ends, self.params.sizes, strict=True)]
        if isinstance(value, dict):
            return tuple({name: x[cut] for name, x in value.items()} for cut in cuts)
        return tuple(value[cut] for cut in cuts)


class CodeNode(RuntimeNode):
    """Statements as a function of the variables they read. Engines build one only in a trusted graph."""

    def setup(self) -> None:
        space: dict[str, Any] = {}
        execute(as_function(self.params.source, self.params.inputs, self.params.outputs), space, "<code node>")
        self.function: Callable[..., tuple[Any, ...]] = space["code"]

    def __call__(self, *values: Any) -> Any:
        result = self.function(*values)
        return result[0] if len(self.params.outputs) == 1 else result


class FloatConstantNode(RuntimeNode):
    """A constant; the other constants differ in the kind of their parameter only."""

    def __call__(self) -> Any:
        return self.params.value


class IntConstantNode(FloatConstantNode):
    """A whole number."""


class StringConstantNode(FloatConstantNode):
    """Text."""


class FlagConstantNode(FloatConstantNode):
    """True or false."""


class MathNode(RuntimeNode):
    """The numpy function of that name; the second operand is `other` if nothing is connected."""

    def __call__(self, a: Any, b: Any = None) -> Any:
        name = self.params.operation
        # A division by zero is a value like any other here; a Condition or the trainer reacts to it.
        with np.errstate(all="ignore"):
            if name in ("mean", "sum", "abs", "negative", "sqrt", "exp", "log"):
                return getattr(np, name)(a)
            return getattr(np, name)(a, self.params.other if b is None else b)


class PickNode(RuntimeNode):
    """One entry of a table; None if the table does not have it."""

    def __call__(self, table: dict[str, Any]) -> Any:
        return table.get(self.params.key)


class ConditionNode(RuntimeNode):
    """A trigger when the number is beyond the limit."""

    def __call__(self, value: Any) -> str | None:
        limit = self.params.limit
        return COMPLETE if (value > limit if self.params.test == "above" else value < limit) else None
