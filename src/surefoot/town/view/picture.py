"""Draw a town from above with numpy alone: floor, walls, objects, agents with their needs, conflicts in red."""

from __future__ import annotations

import numpy as np

from surefoot.town.sim.events import Happenings
from surefoot.town.sim.layout import Layout
from surefoot.town.sim.state import State

TILE = 24
FLOOR, WALL, RED = (240, 238, 230), (88, 82, 78), (214, 60, 52)
THINGS = {
    "shower": (112, 176, 214),
    "fridge": (150, 190, 150),
    "stove": (222, 142, 92),
    "bed": (176, 152, 206),
    "bench": (168, 132, 92),
    "cafe": (206, 168, 104),
    "grocer": (122, 172, 92),
    "desk": (150, 150, 164),
    "checkout": (196, 150, 160),
}
PEOPLE = (
    (44, 104, 186), (196, 92, 36), (58, 140, 84), (150, 62, 150), (28, 144, 160), (190, 150, 30),
    (120, 80, 60), (90, 90, 200), (220, 90, 130), (80, 120, 40), (60, 60, 60), (170, 110, 200),
)  # fmt: skip
NEED_COLOURS = ((214, 120, 50), (70, 150, 200), (120, 170, 60))


def picture(layout: Layout, state: State, town: int = 0, happened: Happenings | None = None) -> np.ndarray:
    """Return a picture of one town, [H, W, 3] uint8."""
    tiles = np.where(layout.floor[:, None], np.array(FLOOR, np.uint8), np.array(WALL, np.uint8))
    tiles = tiles.reshape(layout.height, layout.width, 3)
    sheet = np.ascontiguousarray(tiles.repeat(TILE, axis=0).repeat(TILE, axis=1))
    for lines in (sheet[::TILE], sheet[:, ::TILE]):
        lines[...] = (lines * 0.96).astype(np.uint8)
    conflicts = {h.object for h in happened.of(town) if h.kind == "queue_conflict"} if happened is not None else set()
    for thing in range(layout.objects):
        _draw_object(sheet, layout, state, town, thing, conflict=thing in conflicts)
    on_cell: dict[int, int] = {}
    for agent in range(layout.agents):
        if state.present[town, agent]:
            cell = int(state.cell[town, agent])
            _draw_agent(sheet, layout, state, town, agent, on_cell.get(cell, 0))
            on_cell[cell] = on_cell.get(cell, 0) + 1
    return sheet


def _draw_object(sheet: np.ndarray, layout: Layout, state: State, town: int, thing: int, *, conflict: bool) -> None:
    y, x = divmod(int(layout.object_cell[thing]), layout.width)
    colour = THINGS.get(layout.scenario.objects[thing].type, (180, 180, 120))
    top, left = y * TILE, x * TILE
    sheet[top + 2 : top + TILE - 2, left + 2 : left + TILE - 2] = colour
    if state.user[town, thing] >= 0:
        _frame(sheet, top + 2, left + 2, TILE - 4, (60, 60, 60))
    waiting = int((state.queued[town] == thing).sum())
    for i in range(min(waiting, 5)):
        sheet[top + TILE - 5 : top + TILE - 2, left + 3 + 4 * i : left + 6 + 4 * i] = RED
    if conflict:
        for grow in range(3):
            _frame(sheet, top - grow, left - grow, TILE + 2 * grow, RED)


def _frame(sheet: np.ndarray, top: int, left: int, side: int, colour: tuple[int, int, int]) -> None:
    top, left = max(top, 0), max(left, 0)
    part = sheet[top : top + side, left : left + side]
    part[:1], part[-1:], part[:, :1], part[:, -1:] = colour, colour, colour, colour


def _draw_agent(sheet: np.ndarray, layout: Layout, state: State, town: int, agent: int, others: int) -> None:
    y, x = divmod(int(state.cell[town, agent]), layout.width)
    cy, cx = y * TILE + TILE // 2 - 2 * others, x * TILE + TILE // 2 + 4 * others
    rows, columns = np.ogrid[: sheet.shape[0], : sheet.shape[1]]
    top, left = max(cy - 9, 0), max(cx - 9, 0)
    window = (slice(top, cy + 10), slice(left, cx + 10))
    apart = (rows[window[0]] - cy) ** 2 + (columns[:, window[1]] - cx) ** 2
    patch = sheet[window]
    patch[apart <= 64] = (255, 255, 255)
    patch[apart <= 49] = PEOPLE[agent % len(PEOPLE)]
    for i, colour in enumerate(NEED_COLOURS):
        length = round(float(state.needs[town, agent, i]) * 14)
        sheet[max(cy - 12 + 2 * i, 0) : max(cy - 11 + 2 * i, 0), max(cx - 7, 0) : max(cx - 7 + length, 0)] = colour
