"""Lines of styled text and boxes around them, cut or padded to exact widths."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size

Line = list[tuple[str, str]]
"""Pieces of text, each with a rich style."""


def box(title: str | Line, lines: list[Line], width: int, *, right: Line | None = None, rows: int = 0) -> list[Line]:
    """Return lines inside a rounded border with a title; `rows` pads to a height."""
    left: Line = [(title, "bold")] if isinstance(title, str) else title
    right = right or []
    rule = width - 6 - length(left) - (length(right) + 2 if right else 0)
    if right and rule < 2:
        right, rule = [], width - 6 - length(left)
    top: Line = [("╭─ ", "dim"), *left, (" " + "─" * max(0, rule), "dim")]
    top += [(" ", ""), *right, (" ", "")] if right else []
    top = [*fit(top, width - 2), ("─╮", "dim")]
    body = lines + [[("", "")]] * (rows - len(lines))
    sides = [[("│ ", "dim"), *fit(line, width - 4), (" │", "dim")] for line in body]
    return [top, *sides, [("╰" + "─" * (width - 2) + "╯", "dim")]]


def length(line: Line) -> int:
    return sum(cell_len(text) for text, _ in line)


def fit(line: Line, width: int) -> Line:
    """Return the line cut or padded to exactly `width` cells; a cut one ends with an ellipsis."""
    over = length(line) - width
    if over <= 0:
        return [*line, (" " * -over, "")] if over else line
    out: Line = []
    room = width - 1
    for text, style in line:
        size = cell_len(text)
        if size > room:
            return [*out, (set_cell_size(text, room) + "…", style)] if width > 0 else []
        out.append((text, style))
        room -= size
    return out


def spread(left: Line, right: Line, width: int) -> Line:
    """Return left and right with a gap between them; only left if both do not fit."""
    gap = width - length(left) - length(right)
    return [*left, (" " * gap, ""), *right] if gap >= 2 else left


def wrap(text: str, width: int) -> list[str]:
    lines: list[str] = []
    for word in text.split():
        if lines and cell_len(lines[-1]) + 1 + cell_len(word) <= width:
            lines[-1] += " " + word
        else:
            lines.append(word)
    return lines
