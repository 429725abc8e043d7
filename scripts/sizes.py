"""Prints the lines per room, and what is larger than aimed at: files over 300 lines, classes over 200, functions over 60."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "surefoot"
MOST = {"file": 300, "class": 200, "function": 60}
KINDS = ("files", "lines", "blank", "docstrings", "comments", "code")


def sizes(path: Path) -> Iterator[tuple[str, int, str]]:
    """(what, lines, where) of a file and of all that is defined in it."""
    name, text = str(path.relative_to(ROOT)), path.read_text()
    yield "file", len(text.splitlines()), name
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            what = "class" if isinstance(node, ast.ClassDef) else "function"
            yield what, (node.end_lineno or node.lineno) - node.lineno + 1, f"{name}: {node.name}"


def kinds_of_lines(path: Path) -> list[int]:
    """The counts of `KINDS` for one file; docstrings are those of attributes too, comments those that stand alone."""
    text = path.read_text(encoding="utf-8")
    documented = set[int]()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            documented |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = text.splitlines()
    others = [line.strip() for number, line in enumerate(lines, 1) if number not in documented]
    blank, comments = others.count(""), sum(line.startswith("#") for line in others)
    return [1, len(lines), blank, len(documented), comments, len(others) - blank - comments]


def print_rooms() -> None:
    rooms: dict[str, list[int]] = defaultdict(lambda: [0] * len(KINDS))
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).parts
        for row in (rooms[parts[0] if len(parts) > 1 else "root"], rooms["total"]):
            row[:] = [a + b for a, b in zip(row, kinds_of_lines(path), strict=True)]
    print(f"{'room':12}" + "".join(f"{kind:>12}" for kind in KINDS))
    for room, row in sorted(rooms.items(), key=lambda each: (each[0] == "total", -each[1][1])):
        print(f"{room:12}" + "".join(f"{count:12,}" for count in row))
    print()


def main() -> None:
    print_rooms()
    found = [row for path in sorted((ROOT / "src").rglob("*.py")) for row in sizes(path)]
    for what, most in MOST.items():
        large = sorted(((lines, where) for kind, lines, where in found if kind == what and lines > most), reverse=True)
        total = sum(kind == what for kind, _, _ in found)
        print(f"{what}: {len(large)} of {total:,} over {most} lines")
        print("".join(f"{lines:6}  {where}\n" for lines, where in large))


if __name__ == "__main__":
    main()
