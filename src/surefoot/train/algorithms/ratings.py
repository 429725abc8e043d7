"""Who is stronger, in numbers: Elo's expectation and update, and Wilson's interval for a share of wins."""

from __future__ import annotations

import math

SCALE = 400.0
"""Elo points that make the odds ten to one."""
START = 1000.0
"""What a first player is rated."""


def expected(rating: float, other: float) -> float:
    """The score (win 1, draw ½) that `rating` should get on average against `other`."""
    return 1.0 / (1.0 + 10.0 ** ((other - rating) / SCALE))


def after_game(rating: float, other: float, score: float, k: float) -> tuple[float, float]:
    """Both ratings after one game in which the first got `score` (1, ½ or 0); what one wins the other loses."""
    change = k * (score - expected(rating, other))
    return rating + change, other - change


def gap(score: float) -> float:
    """How many points stronger somebody is who gets `score` on average; infinite at 0 and 1."""
    if score <= 0.0:
        return -math.inf
    return math.inf if score >= 1.0 else SCALE * math.log10(score / (1.0 - score))


def wilson(score: float, games: int, z: float = 1.96) -> tuple[float, float]:
    """Interval of a mean score in [0, 1] over `games`, 95 % by default.

    Draws count ½. A score's variance is then at most that of wins and losses alone, so the interval is on the safe side.
    """
    if games < 1:
        return 0.0, 1.0
    shrink = 1.0 + z * z / games
    middle = (score + z * z / (2 * games)) / shrink
    half = z / shrink * math.sqrt(score * (1.0 - score) / games + z * z / (4.0 * games * games))
    return max(0.0, middle - half), min(1.0, middle + half)
