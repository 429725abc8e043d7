"""Prints the reading distance: lines of code that one experience passes from the world to the weights.

Comments, docstrings and blank lines are not counted: explaining a line must not make the path longer.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
AIMS = {"torch": 2200, "kernel": 3500}


def read_path() -> dict[str, list[str]]:
    """Return {section of docs/explain/path.txt: its files, under src/surefoot}."""
    sections: dict[str, list[str]] = {}
    files: list[str] = []
    for line in (ROOT / "docs/explain/path.txt").read_text().splitlines():
        if line.startswith("["):
            files = sections.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            files.append(line)
    return sections


def count_lines(name: str) -> int:
    """Return the lines of code of a Python or C file under src/surefoot, without comments, docstrings and blank lines."""
    text = (ROOT / "src/surefoot" / name).read_text(encoding="utf-8")
    if not name.endswith(".py"):
        # A comment at the end of a line leaves code before it, so that the line is still counted.
        text = re.sub(r"/\*.*?\*/|//[^\n]*", lambda found: "\n" * found[0].count("\n"), text, flags=re.DOTALL)
        return sum(1 for line in text.splitlines() if line.strip())
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            docstrings |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(map(str.strip, text.splitlines()), 1)
    return sum(1 for number, line in lines if line and not line.startswith("#") and number not in docstrings)


def main() -> None:
    sections = read_path()
    print("Lines of code, without comments, docstrings and blank lines.\n")
    for section, aim in AIMS.items():
        print(f"[{section}]")
        for name in sections[section]:
            print(f"{count_lines(name):6}  {name}")
        print(f"{sum(map(count_lines, sections[section])):6}  total (the aim is {aim:,})\n")
    observers = [name for name in sections["observers"] if name not in sections["torch"]]
    print(
        f"{sum(map(count_lines, observers)):6}  in {len(observers)} files that only observe or check: {', '.join(observers)}"
    )


if __name__ == "__main__":
    main()
