"""Playing strength: Elo's expected score and rating update, and Wilson's interval of a score."""

from __future__ import annotations

import math

# Elo's definition: a difference of 400 points means odds of ten to one.
SCALE = 400.0
# Rating of the first player. Only differences count, so the value is a convention.
START = 1000.0


def expected(rating: float, other: float) -> float:
    """Return the mean score (win 1, draw ½) that Elo predicts for `rating` against `other`."""
    return 1.0 / (1.0 + 10.0 ** ((other - rating) / SCALE))


def after_game(rating: float, other: float, score: float, k: float) -> tuple[float, float]:
    """Return both ratings after a game in which the first player scored 1, ½ or 0. Their sum does not change."""
    change = k * (score - expected(rating, other))
    return rating + change, other - change


def gap(score: float) -> float:
    """Return the rating difference for a mean score: the inverse of `expected`, infinite at 0 and 1."""
    if score <= 0.0:
        return -math.inf
    return math.inf if score >= 1.0 else SCALE * math.log10(score / (1.0 - score))


def wilson(score: float, games: int, z: float = 1.96) -> tuple[float, float]:
    """Return Wilson's interval of a mean score in [0, 1] over `games` games, 95 % by default.

    Draws count ½. The variance of a score is then at most that of wins and losses alone, so the interval is conservative.
    """
    # Without games every score is possible.
    if games < 1:
        return 0.0, 1.0
    shrink = 1.0 + z * z / games
    middle = (score + z * z / (2 * games)) / shrink
    half = z / shrink * math.sqrt(score * (1.0 - score) / games + z * z / (4.0 * games * games))
    return max(0.0, middle - half), min(1.0, middle + half)
