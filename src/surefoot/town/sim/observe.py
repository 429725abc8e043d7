"""What agents observe (named features) and which actions they may take (masks)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from surefoot.town.sim.jobs import shift_now
from surefoot.town.sim.layout import CHAT, FAR, LEAVE, NORTH, USE, WAIT, WAY, Layout, first_agent, first_place
from surefoot.town.sim.queues import Utilities
from surefoot.town.sim.relationships import rivalry_with, sum_over_ties
from surefoot.town.sim.relationships import strongest as strongest_of
from surefoot.town.sim.state import ABSENT, AWAIT, IDLE, LATE, ON_TIME, POST, State

OWN = (
    "need_hunger", "need_hygiene", "need_energy", "wallet", "lateness_counter", "on_shift", "time_sin", "time_cos",
    "attendance_ratio", "wages_withheld", "shift_pre", "shift_on_time", "shift_late", "shift_absent", "shift_post",
    "embedding_slot_norm", "ctx_reset_flag", "episode_progress", "rivalry_max", "rivalry_avoid_count",
    "social_trust_mean", "social_trust_max", "social_rivalry_mean", "social_familiarity_max", "rival_dx",
    "rival_dy", "rival_distance", "nearest_agent_dx", "nearest_agent_dy", "nearest_agent_distance",
    "neighbor_agent_ratio", "chat_ready", "last_action_id", "last_action_success", "using", "use_left", "in_queue",
    "waited", "personality_extroversion", "personality_forgiveness", "personality_ambition", "power", "water",
    "price", "meals", "job_starts_in", "job_ends_in", "at_work",
    *(f"job_{name}" for name in WAY),
)  # fmt: skip
"""Features of every town; those of the original town first."""
OF_A_TYPE = ("busy", "queue", "cooldown", "mine")
"""Features of the nearest object of each type, besides the path to it."""
CONFLICT_FEATURES = ("rivalry_max", "rivalry_avoid_count")
INDEX = {name: i for i, name in enumerate(OWN)}


def feature_names(layout: Layout) -> list[str]:
    """Return the names of all features, in order."""
    types = layout.scenario.types
    ways = [f"{kind}_{name}" for kind in types for name in WAY]
    return [*OWN, *ways, *(f"{kind}_{name}" for kind in types for name in OF_A_TYPE)]


def neighbours(state: State, layout: Layout) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the nearest agent (-1 for none), its distance in tiles, and the number of agents within five, [B, A] each."""
    towns, agents = state.present.shape
    if agents == 1:
        return np.full((towns, 1), -1), np.full((towns, 1), FAR), np.zeros((towns, 1))
    x, y = layout.column.take(state.cell), layout.row.take(state.cell)
    apart = np.abs(x[:, :, None] - x[:, None, :])
    apart += np.abs(y[:, :, None] - y[:, None, :])
    apart += _no_self(agents)
    if np.count_nonzero(state.present) < state.present.size:
        apart[~np.broadcast_to(state.present[:, None, :], apart.shape)] = FAR
    nearest, far = apart.argmin(axis=2), apart.min(axis=2)
    nearest[far >= FAR] = -1
    return nearest, far, (apart <= 5).sum(axis=2)


@lru_cache(maxsize=64)
def _no_self(agents: int) -> np.ndarray:
    """Return [A, A] with FAR on the diagonal: no agent is its own neighbour."""
    return np.eye(agents, dtype=np.int16) * np.int16(FAR)


def features(
    state: State, layout: Layout, utilities: Utilities, near: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> np.ndarray:
    """Return [B, A, F] float32, scaled to about 1; zeros for agents that are not in town."""
    towns, agents = state.present.shape
    types, size = layout.types, len(OWN)
    out = np.zeros((towns, agents, size + types * (len(WAY) + len(OF_A_TYPE))), np.float32)
    _own_features(out, state, layout)
    _town(out, state, layout, utilities)
    _social(out, state, layout, near)
    if layout.somebody_works:
        _job(out, state, layout)
    if types:
        out[:, :, size : size + types * len(WAY)] = layout.way_to_types[state.cell]
        _queues(out[:, :, size + types * len(WAY) :], state, layout)
    if np.count_nonzero(state.present) < state.present.size:
        out[~state.present] = 0.0
    return out


def _own_features(out: np.ndarray, state: State, layout: Layout) -> None:
    out[:, :, 0:3] = state.needs
    out[:, :, INDEX["wallet"]] = np.minimum(state.wallet, 5.0) * 0.2
    out[:, :, INDEX["embedding_slot_norm"]] = np.arange(state.present.shape[1]) / max(1, state.present.shape[1] - 1)
    out[:, :, INDEX["ctx_reset_flag"]] = state.age == 0
    out[:, :, INDEX["chat_ready"]] = state.chat_at <= state.tick[:, None]
    out[:, :, INDEX["last_action_id"]] = state.last_action * (1.0 / (USE + layout.types))
    out[:, :, INDEX["last_action_success"]] = state.last_ok
    out[:, :, INDEX["using"]] = state.using >= 0
    out[:, :, INDEX["use_left"]] = state.use_left * 0.02
    waits = state.queued >= 0
    out[:, :, INDEX["in_queue"]] = waits
    out[:, :, INDEX["waited"]] = np.minimum((state.tick[:, None] - state.since) * waits, 50) * 0.02
    first = INDEX["personality_extroversion"]
    out[:, :, first : first + 3] = layout.character


def _town(out: np.ndarray, state: State, layout: Layout, utilities: Utilities) -> None:
    scenario = layout.scenario
    first = INDEX["time_sin"]
    out[:, :, first : first + 2] = layout.clock.take(state.tick % scenario.ticks_per_day, axis=0)[:, None]
    for name, values in (
        ("episode_progress", state.tick / scenario.ticks),
        ("price", utilities.price * 0.5),
        ("meals", np.minimum(state.meals, 10) * 0.1),
    ):
        out[:, :, INDEX[name]] = values[:, None]
    for name, needy in (("power", layout.power), ("water", layout.water)):
        cut = layout.scenario.perturbations.events and np.count_nonzero(needy)
        out[:, :, INDEX[name]] = utilities.usable[:, needy].all(axis=1, keepdims=True) if cut else 1.0


def _social(out: np.ndarray, state: State, layout: Layout, near: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    nearest, apart, around = near
    first = first_agent(*state.present.shape)
    x, y = layout.column.take(state.cell), layout.row.take(state.cell)
    scale = 1.0 / (layout.width + layout.height)
    someone = nearest >= 0
    other = nearest + first
    out[:, :, INDEX["nearest_agent_dx"]] = (x.take(other) - x) * someone * (1.0 / layout.width)
    out[:, :, INDEX["nearest_agent_dy"]] = (y.take(other) - y) * someone * (1.0 / layout.height)
    out[:, :, INDEX["nearest_agent_distance"]] = np.minimum(apart * scale, 1.0)
    out[:, :, INDEX["neighbor_agent_ratio"]] = around / max(1, state.present.shape[1] - 1)
    out[:, :, INDEX["rival_distance"]] = 1.0
    if not np.count_nonzero(state.tie_with >= 0):
        return
    rivalry, trust = state.rivalry, state.trust
    peak = strongest_of(rivalry)
    out[:, :, INDEX["rivalry_max"]] = peak
    avoid = rivalry >= max(layout.scenario.rivalry.avoid_threshold, 1e-9)
    if np.count_nonzero(avoid):
        out[:, :, INDEX["rivalry_avoid_count"]] = avoid.sum(axis=2)
    places = rivalry.shape[2]
    out[:, :, INDEX["social_trust_mean"]] = sum_over_ties(trust) / places
    out[:, :, INDEX["social_trust_max"]] = strongest_of(trust)
    out[:, :, INDEX["social_rivalry_mean"]] = sum_over_ties(rivalry) / places
    out[:, :, INDEX["social_familiarity_max"]] = strongest_of(state.familiarity)
    if np.count_nonzero(peak):
        rival = state.tie_with.take(rivalry.argmax(axis=2) + first_place(*state.tie_with.shape))
        real = (peak > 0) & (rival >= 0)
        index = rival + first
        dx, dy = (x.take(index) - x) * real, (y.take(index) - y) * real
        out[:, :, INDEX["rival_dx"]], out[:, :, INDEX["rival_dy"]] = dx / layout.width, dy / layout.height
        out[:, :, INDEX["rival_distance"]] = np.where(real, np.minimum((np.abs(dx) + np.abs(dy)) * scale, 1.0), 1.0)


def _job(out: np.ndarray, state: State, layout: Layout) -> None:
    scenario, shift = layout.scenario, state.shift
    clock = state.tick % scenario.ticks_per_day
    has = layout.has_job
    _, due = shift_now(state, layout)
    day = 1.0 / scenario.ticks_per_day
    out[:, :, INDEX["lateness_counter"]] = np.minimum(state.lateness, 10) * 0.1
    out[:, :, INDEX["on_shift"]] = due
    out[:, :, INDEX["attendance_ratio"]] = state.present_ticks / np.maximum(state.shift_ticks, 1)
    out[:, :, INDEX["wages_withheld"]] = np.minimum(state.withheld, 2.0) * 0.5
    for name, which in (
        ("pre", (IDLE, AWAIT)),
        ("on_time", (ON_TIME,)),
        ("late", (LATE,)),
        ("absent", (ABSENT,)),
        ("post", (POST,)),
    ):
        out[:, :, INDEX[f"shift_{name}"]] = np.isin(shift, which) & has
    ahead = layout.shift_ahead.take(clock, axis=0)
    out[:, :, INDEX["job_starts_in"]] = np.where(has & ~due, np.minimum(ahead, 50) * 0.02, 0.0)
    out[:, :, INDEX["job_ends_in"]] = layout.shift_left.take(clock, axis=0) * due * day
    out[:, :, INDEX["at_work"]] = (layout.distance[layout.job_object, state.cell] <= 1) & has
    first = INDEX["job_dx"]
    out[:, :, first : first + len(WAY)] = layout.way[layout.job_object, state.cell]


def _queues(out: np.ndarray, state: State, layout: Layout) -> None:
    """Fill OF_A_TYPE: in use, queue length, the agent's cooldown, and whether the agent uses it or waits for it."""
    towns, agents = state.present.shape
    objects = state.user.shape[1]
    thing = layout.nearest_row.take(state.cell, axis=0)
    in_town = thing + first_agent(towns, objects)[:, :, None]
    shaped = out.reshape(towns, agents, layout.types, len(OF_A_TYPE))
    shaped[:, :, :, 0] = state.user.take(in_town) >= 0
    waits = state.queued >= 0
    if np.count_nonzero(waits):
        queue = (state.queued + first_agent(towns, objects))[waits]
        length = np.bincount(queue, minlength=towns * objects)
        shaped[:, :, :, 1] = np.minimum(length.take(in_town), 8) * 0.25
    left = state.ready_at.take(thing + first_place(towns, agents, objects)[:, :, None]) - state.tick[:, None, None]
    shaped[:, :, :, 2] = np.minimum(np.maximum(left, 0), 50) * 0.02
    shaped[:, :, :, 3] = (state.queued[:, :, None] == thing) | (state.using[:, :, None] == thing)
    out[...] = shaped.reshape(out.shape)


def action_mask(
    state: State, layout: Layout, utilities: Utilities, nearest: np.ndarray, apart: np.ndarray
) -> np.ndarray:
    """Return the allowed actions, [B, A, actions] bool. A user of an object can only wait or leave it.

    `nearest` and `apart` [B, A] are the nearest agent and its distance, from `neighbours`.
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
        mask[:, :, USE:] = _usable_objects(state, layout, utilities, idle)
    return mask


def _usable_objects(state: State, layout: Layout, utilities: Utilities, idle: np.ndarray) -> np.ndarray:
    thing = layout.reach_row.take(state.cell, axis=0)
    fine = (thing >= 0) & idle[:, :, None]
    if not np.count_nonzero(fine):
        return fine
    index = np.maximum(thing, 0)
    ready = state.ready_at.take(index + first_place(*state.ready_at.shape)[:, :, None])
    fine &= ready <= state.tick[:, None, None]
    if layout.scenario.perturbations.events:
        fine &= utilities.usable[:, None, :]
    if layout.somebody_pays:
        fine &= state.wallet[:, :, None] >= layout.cost * utilities.price[:, None, None]
    if layout.somebody_eats:
        fine &= ~layout.takes | (state.meals > 0)[:, None, None]
    strong = (state.rivalry >= layout.scenario.rivalry.avoid_threshold) & (state.tie_with >= 0)
    if layout.scenario.queue.guardrail and np.count_nonzero(strong):
        in_town = index + first_agent(*state.user.shape)[:, :, None]
        user = np.where(thing >= 0, state.user.take(in_town), -1)
        for k in range(layout.types):
            same = strong & (state.tie_with == user[:, :, k, None]) & (user[:, :, k, None] >= 0)
            fine[:, :, k] &= ~same.any(axis=2)
    return fine
