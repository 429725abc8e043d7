"""Rewards of a tick per agent, and the parts they are the sum of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surefoot.town.sim.jobs import Pay, shift_now
from surefoot.town.sim.layout import REACH, Layout
from surefoot.town.sim.state import State

PARTS = ("survival", "needs", "wage", "punctuality", "social", "avoidance", "terminal")
SURVIVAL, NEED, WAGE, PUNCTUALITY, SOCIAL, AVOIDANCE, TERMINAL = range(len(PARTS))
_ONES = np.ones(len(PARTS))


@dataclass(slots=True, kw_only=True)
class TownRewardFacts:
    """Inputs of the reward besides the state, [B, A] each."""

    acted: np.ndarray
    pay: Pay | None
    social: np.ndarray
    """Rewards of chats and conflicts."""
    waiting: np.ndarray
    """bool: in a queue."""
    avoid: np.ndarray
    """Number of rivals to be avoided."""
    near: np.ndarray
    """Number of those that are near."""
    rivalry: np.ndarray
    """Strongest rivalry."""
    fainted: np.ndarray
    evicted: np.ndarray


def way_left(state: State, layout: Layout) -> np.ndarray:
    """Return the distance to work as a share of the town's size, [B, A]; 0 for agents that need not be there soon."""
    rules, day = layout.scenario.rewards, layout.scenario.ticks_per_day
    ahead = layout.shift_ahead.take(state.tick % day, axis=0)
    due = (shift_now(state, layout)[1] | (ahead <= rules.commute_ahead)) & state.present
    steps = np.maximum(layout.distance[layout.job_object, state.cell] - REACH, 0)
    return due * np.minimum(steps, layout.width + layout.height) / (layout.width + layout.height)


def reward(state: State, layout: Layout, facts: TownRewardFacts) -> tuple[np.ndarray, np.ndarray]:
    """Return the rewards [B, A] and their parts [B, A, PARTS]; 0 for agents that are not in town."""
    rules = layout.scenario.rewards
    parts = np.zeros((*facts.acted.shape, len(PARTS)))
    parts[:, :, SURVIVAL] = rules.survival * layout.factor[:, 0]
    lacking = 1.0 - state.needs
    parts[:, :, NEED] = -((lacking * lacking) @ layout.need_cost)
    if facts.pay is not None:
        parts[:, :, WAGE] = rules.wage * facts.pay.earned * layout.factor[:, 1]
        parts[:, :, PUNCTUALITY] = rules.punctuality * facts.pay.punctual
        if rules.commute:
            parts[:, :, PUNCTUALITY] -= rules.commute * way_left(state, layout)
    if rules.social:
        parts[:, :, SOCIAL] = facts.social * layout.factor[:, 2] - rules.waiting * facts.waiting
    if rules.avoidance and np.count_nonzero(facts.avoid):
        away = (facts.avoid > 0) & (facts.near == 0)
        parts[:, :, AVOIDANCE] = rules.avoidance * away - 4.0 * rules.avoidance * facts.near
    if rules.rivalry:
        parts[:, :, AVOIDANCE] -= rules.rivalry * facts.rivalry
    ended = facts.fainted | facts.evicted
    if np.count_nonzero(ended):
        # An agent that leaves gets no positive reward in that tick.
        np.minimum(parts, 0.0, out=parts, where=ended[:, :, None])
        parts[:, :, TERMINAL] = -rules.faint * facts.fainted - rules.eviction * facts.evicted
    parts *= facts.acted[:, :, None]
    total = parts @ _ONES
    return np.minimum(np.maximum(total, -rules.clip), rules.clip), parts
