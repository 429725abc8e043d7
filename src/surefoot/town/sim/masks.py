"""What each agent can do now: what is not possible is not offered."""

from __future__ import annotations

import numpy as np

from surefoot.town.sim.layout import CHAT, LEAVE, NORTH, USE, WAIT, Layout, first_agent, first_place
from surefoot.town.sim.queues import Utilities
from surefoot.town.sim.relationships import rivalry_with
from surefoot.town.sim.state import State


def action_mask(
    state: State, layout: Layout, utilities: Utilities, nearest: np.ndarray, apart: np.ndarray
) -> np.ndarray:
    """[B, A, actions] bool, True = possible. Who uses something can only wait or leave it; who is gone only waits.

    `nearest` and `apart` [B, A] say who is nearest to each, and how far.
    """
    towns, agents = state.present.shape
    mask = np.zeros((towns, agents, layout.actions), np.bool_)
    idle = state.present & (state.using < 0)
    mask[:, :, WAIT] = True
    held = state.queued >= 0
    mask[:, :, LEAVE] = state.present & (held if layout.scenario.queue.commit else held | (state.using >= 0))
    after = layout.step.take(state.cell, axis=0)
    mask[:, :, NORTH : NORTH + 4] = (after[:, :, 1:] != after[:, :, :1]) & idle[:, :, None]
    rules = layout.scenario
    chat = idle & (apart <= 1) & (state.chat_at <= state.tick[:, None])
    if np.count_nonzero(chat) and rules.queue.guardrail:
        chat &= rivalry_with(state, nearest) < rules.rivalry.avoid_threshold
    mask[:, :, CHAT] = chat
    if layout.types:
        mask[:, :, USE:] = _uses(state, layout, utilities, idle)
    return mask


def _uses(state: State, layout: Layout, utilities: Utilities, idle: np.ndarray) -> np.ndarray:
    thing = layout.reach_row.take(state.cell, axis=0)
    fine = (thing >= 0) & idle[:, :, None]
    if not np.count_nonzero(fine):
        return fine
    there = np.maximum(thing, 0)
    ready = state.ready_at.take(there + first_place(*state.ready_at.shape)[:, :, None])
    fine &= ready <= state.tick[:, None, None]
    if layout.scenario.perturbations.events:
        fine &= utilities.usable[:, None, :]
    if layout.somebody_pays:
        fine &= state.wallet[:, :, None] >= layout.cost * utilities.price[:, None, None]
    if layout.somebody_eats:
        fine &= ~layout.takes | (state.meals > 0)[:, None, None]
    strong = (state.rivalry >= layout.scenario.rivalry.avoid_threshold) & (state.tie_with >= 0)
    if layout.scenario.queue.guardrail and np.count_nonzero(strong):
        in_town = there + first_agent(*state.user.shape)[:, :, None]
        user = np.where(thing >= 0, state.user.take(in_town), -1)
        for k in range(layout.types):
            same = strong & (state.tie_with == user[:, :, k, None]) & (user[:, :, k, None] >= 0)
            fine[:, :, k] &= ~same.any(axis=2)
    return fine
