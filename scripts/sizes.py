"""Prints what is larger than the house likes: files over 300 lines, classes over 200, functions over 60."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST = {"file": 300, "class": 200, "function": 60}


def sizes(path: Path) -> Iterator[tuple[str, int, str]]:
    """(what, lines, where) of a file and of all that is defined in it."""
    name, text = str(path.relative_to(ROOT)), path.read_text()
    yield "file", len(text.splitlines()), name
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            what = "class" if isinstance(node, ast.ClassDef) else "function"
            yield what, (node.end_lineno or node.lineno) - node.lineno + 1, f"{name}: {node.name}"


def main() -> None:
    files = sorted((ROOT / "src").rglob("*.py"))
    found = [row for path in files for row in sizes(path)]
    for what, most in MOST.items():
        large = sorted(((lines, where) for kind, lines, where in found if kind == what and lines > most), reverse=True)
        total = sum(kind == what for kind, _, _ in found)
        print(f"{what}: {len(large)} of {total:,} over {most} lines")
        print("".join(f"{lines:6}  {where}\n" for lines, where in large))


if __name__ == "__main__":
    main()
