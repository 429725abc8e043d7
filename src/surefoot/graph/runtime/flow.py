"""Values merged and rows split; nothing that comes in is ever lost."""

from __future__ import annotations

import textwrap
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from surefoot.errors import GraphError
from surefoot.graph.run.execute import execute
from surefoot.graph.runtime.base import RuntimeNode


class ORNode(RuntimeNode):
    """fby: the first value, then the loop's. priority: whichever is there, in order; with `queue` the others wait."""

    def setup(self) -> None:
        """Nothing waits."""
        self.queue = self.params.queue or self.params.mode == "arrival"
        self.waiting: deque[Any] = deque()

    def __call__(self, a: Any = None, b: Any = None, c: Any = None) -> Any:
        if self.params.mode == "fby":
            return a if b is None else b
        if not self.queue:
            there = [value for value in (a, b, c) if value is not None]
            if len(there) > 1:
                raise GraphError("two values came in one tick; set queue to true to keep both, one after the other")
            return there[0] if there else None
        self.waiting.extend(value for value in (a, b, c) if value is not None)
        return self.waiting.popleft() if self.waiting else None

    def snapshot(self) -> dict[str, Any]:
        """What waits; in the usual mode nothing does."""
        return {"waiting": list(self.waiting)}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from there."""
        self.waiting = deque(saved["waiting"])


class BatchNode(RuntimeNode):
    """Rows of all inputs one below the other."""

    def __call__(self, *values: Any) -> Any:
        there = [value for value in values if value is not None]
        if isinstance(there[0], dict):
            return {name: np.concatenate([value[name] for value in there]) for name in there[0]}
        return np.concatenate(there)


class SplitNode(RuntimeNode):
    """The rows given back."""

    def __call__(self, value: Any) -> tuple[Any, ...]:
        ends = np.cumsum(self.params.sizes)
        cuts = [slice(int(end - size), int(end)) for end, size in zip(ends, self.params.sizes, strict=True)]
        if isinstance(value, dict):
            return tuple({name: x[cut] for name, x in value.items()} for cut in cuts)
        return tuple(value[cut] for cut in cuts)


class CodeNode(RuntimeNode):
    """Statements as a function of the names they read. Engines build one only in a graph that is trusted."""

    def setup(self) -> None:
        """Compile the statements."""
        body = textwrap.indent(self.params.source.strip() or "pass", "    ")
        outputs = self.params.outputs
        returned = ", ".join(outputs) + "," if outputs else ""
        space: dict[str, Any] = {}
        execute(f"def code({', '.join(self.params.inputs)}):\n{body}\n    return ({returned})\n", space, "<code node>")
        self.function: Callable[..., tuple[Any, ...]] = space["code"]

    def __call__(self, *values: Any) -> Any:
        result = self.function(*values)
        return result[0] if len(self.params.outputs) == 1 else result
