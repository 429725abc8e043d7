"""The only place where text becomes code: an exported program of a checked graph, or a Code node of a trusted one."""

from __future__ import annotations

from typing import Any


def execute(text: str, space: dict[str, Any], name: str) -> None:
    """Run `text` in the namespace `space`; `name` stands for the file in tracebacks."""
    exec(compile(text, name, "exec", dont_inherit=True), space)
