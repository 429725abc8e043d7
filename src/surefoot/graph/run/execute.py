"""The one place where text becomes code: a program written here from a checked graph, or a code node that was trusted."""

from __future__ import annotations

from typing import Any


def execute(text: str, space: dict[str, Any], name: str) -> None:
    """Run `text` in `space`; tracebacks call it `name`. Nothing that only reads or checks a graph comes here."""
    exec(compile(text, name, "exec", dont_inherit=True), space)
