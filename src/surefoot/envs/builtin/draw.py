"""Draw lines, boxes, discs and terrain with numpy alone, anti-aliased."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

HEIGHT, WIDTH = 300, 400
# Every pixel is painted as 2 x 2 and averaged, which smooths the edges.
_FINE_HEIGHT, _FINE_WIDTH = 2 * HEIGHT, 2 * WIDTH

Colour = tuple[int, int, int]
Point = tuple[float, float]

WHITE: Colour = (255, 255, 255)
BLACK: Colour = (32, 33, 36)
GREY: Colour = (140, 145, 150)
BROWN: Colour = (202, 152, 101)
BLUE: Colour = (72, 118, 190)
GREEN: Colour = (104, 168, 110)
RED: Colour = (200, 78, 72)


class Canvas:
    """A white canvas in the environment's units: x grows to the right, y upwards, both to the same scale."""

    def __init__(self, *, left: float, right: float, middle: float) -> None:
        self._scale = _FINE_WIDTH / (right - left)
        self._left = left
        self._top = middle + _FINE_HEIGHT / self._scale / 2
        self._pixels = np.full((_FINE_HEIGHT, _FINE_WIDTH, 3), WHITE, np.uint8)
        self._x = self._left + (np.arange(_FINE_WIDTH) + 0.5) / self._scale
        self._y = self._top - (np.arange(_FINE_HEIGHT) + 0.5) / self._scale

    def box(self, low: Point, high: Point, colour: Colour) -> None:
        """Fill the rectangle with lower left corner `low` and upper right corner `high`."""
        rows, columns = self._window(low, high)
        x, y = self._x[columns], self._y[rows, None]
        inside = (x >= low[0]) & (x <= high[0]) & (y >= low[1]) & (y <= high[1])
        self._pixels[rows, columns][inside] = colour

    def disc(self, centre: Point, radius: float, colour: Colour) -> None:
        """Fill a circle."""
        self.line(centre, centre, 2 * radius, colour)

    def line(self, start: Point, end: Point, width: float, colour: Colour) -> None:
        """Draw a line with round ends: all points within width / 2 of the segment."""
        radius = width / 2
        low = (min(start[0], end[0]) - radius, min(start[1], end[1]) - radius)
        high = (max(start[0], end[0]) + radius, max(start[1], end[1]) + radius)
        rows, columns = self._window(low, high)
        x, y = self._x[columns] - start[0], self._y[rows, None] - start[1]
        along = (end[0] - start[0], end[1] - start[1])
        length2 = along[0] ** 2 + along[1] ** 2
        nearest = np.clip((x * along[0] + y * along[1]) / (length2 or 1.0), 0.0, 1.0)
        distance2 = np.square(x - nearest * along[0]) + np.square(y - nearest * along[1])
        self._pixels[rows, columns][distance2 <= radius**2] = colour

    def ground(self, height: Callable[[np.ndarray], np.ndarray], colour: Colour) -> None:
        """Fill everything below y = height(x)."""
        self._pixels[self._y[:, None] <= height(self._x)] = colour

    def picture(self) -> np.ndarray:
        """Return the canvas as [300, 400, 3] uint8, the first row at the top."""
        finer = self._pixels.astype(np.uint16)
        rows = finer[0::2] + finer[1::2]
        return ((rows[:, 0::2] + rows[:, 1::2]) // 4).astype(np.uint8)

    def _window(self, low: Point, high: Point) -> tuple[slice, slice]:
        """Return the rows and columns that hold the rectangle, cut to the canvas."""
        rows = _cells((self._top - high[1]) * self._scale, (self._top - low[1]) * self._scale, len(self._y))
        columns = _cells((low[0] - self._left) * self._scale, (high[0] - self._left) * self._scale, len(self._x))
        return rows, columns


def _cells(first: float, last: float, size: int) -> slice:
    return slice(min(max(math.floor(first), 0), size), min(max(math.ceil(last), 0), size))
