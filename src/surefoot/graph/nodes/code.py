"""Code nodes at work, and only when their owner said so."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from surefoot.errors import GraphError
from surefoot.graph.run.execute import execute


class Code:
    """Statements as a function of the names they read."""

    def __init__(
        self,
        source: str,
        inputs: Sequence[str] = (),
        outputs: Sequence[str] = (),
        once: bool = False,
        *,
        trust: bool = False,
    ) -> None:
        if not trust:
            raise GraphError(
                "this graph holds code of its own; read it (`surefoot graph check` shows it) and say --trust to let it run"
            )
        body = textwrap.indent(source.strip() or "pass", "    ")
        gives = ", ".join(outputs) + "," if outputs else ""
        text = f"def code({', '.join(inputs)}):\n{body}\n    return ({gives})\n"
        space: dict[str, Any] = {}
        execute(text, space, "<code node>")
        self.function: Callable[..., tuple[Any, ...]] = space["code"]
        self.outputs = tuple(outputs)

    def __call__(self, *values: Any) -> Any:
        given = self.function(*values)
        return given[0] if len(self.outputs) == 1 else given
