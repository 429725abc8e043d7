"""Draw the rooms of the package as docs/assets/house.svg and list them in docs/explain/map.md.

Layers come from the import contract, sub-rooms from the folders, their lines from the docstrings of their packages.
"""

from __future__ import annotations

import ast
import re
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "surefoot"
PICTURE = ROOT / "docs" / "assets" / "house.svg"
PAGE = ROOT / "docs" / "explain" / "map.md"
WIDTH, LAYER, GAP = 960, 58, 10


def layers() -> list[list[str]]:
    """The rooms from top to bottom, as the import contract in pyproject.toml lists them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    return [[room.strip().removeprefix("surefoot.") for room in row.split("|")] for row in contracts[0]["layers"]]


def sub_rooms(room: str) -> list[str]:
    """The sub-packages of a room, by name."""
    return sorted(path.parent.name for path in (SOURCE / room).glob("*/__init__.py"))


def table() -> str:
    """One row per room and sub-room, in the order of the layers."""
    rows = ["| room | content |", "|---|---|"]
    for room in (room for row in layers() for room in row if (SOURCE / room).is_dir()):
        for package in sorted((SOURCE / room).rglob("__init__.py")):
            text = ast.get_docstring(ast.parse(package.read_text(encoding="utf-8"))) or ""
            where = package.parent.relative_to(SOURCE)
            # The earlier systems are named on one page only; Stable-Baselines3 is not one of them.
            earlier = where.parts[0] == "compat" and len(where.parts) > 1 and where.parts[1] != "sb3"
            line = "Names of [an earlier system](origins.md)." if earlier else text.splitlines()[0]
            rows.append(f"| `{where}` | {line} |")
    return "\n".join([*rows, "| `errors.py` | The exception tree. |"])


def page() -> str:
    """docs/explain/map.md with the current table between its markers."""
    text = PAGE.read_text(encoding="utf-8")
    return re.sub(
        r"<!-- rooms -->.*?<!-- /rooms -->",
        lambda _: f"<!-- rooms -->\n{table()}\n<!-- /rooms -->",
        text,
        flags=re.DOTALL,
    )


def svg() -> str:
    """The picture: one row per layer, one box per room, its sub-rooms in small letters."""
    rows = layers()
    height = len(rows) * (LAYER + GAP) + GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">',
        "<title>The rooms of surefoot: a room imports only from the rows below it</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for i, rooms in enumerate(rows):
        y = GAP + i * (LAYER + GAP)
        width = (WIDTH - GAP * (len(rooms) + 1)) / len(rooms)
        for j, room in enumerate(rooms):
            x = GAP + j * (width + GAP)
            parts.append(
                f'<rect x="{x:.0f}" y="{y}" width="{width:.0f}" height="{LAYER}" rx="6" fill="#e6f3f1" stroke="#2a7f78"/>'
                f'<text x="{x + width / 2:.0f}" y="{y + 24}" text-anchor="middle" font-size="17" fill="#123f3b">{room}</text>'
            )
            # Two lines of at most half the names each: `server` and `compat` do not fit into one in a narrow box.
            names = sub_rooms(room)
            half = len(names) if width > 400 else (len(names) + 1) // 2
            for k, line in enumerate((names[:half], names[half:])):
                text = escape(" · ".join(line))
                style = 'text-anchor="middle" font-size="10.5" fill="#37625e"'
                parts.append(f'<text x="{x + width / 2:.0f}" y="{y + 40 + 12 * k}" {style}>{text}</text>')
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    for path, text in ((PICTURE, svg()), (PAGE, page())):
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
