"""What an agent sees: named numbers about itself, the town, ways, queues and ties; and, if asked, a map around it."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from surefoot.town.sim.layout import USE, WAY, Layout, first_agent, first_place
from surefoot.town.sim.queues import Utilities
from surefoot.town.sim.relationships import added
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
"""Features that every town has, the original's first."""
OF_A_TYPE = ("busy", "queue", "cooldown", "mine")
"""Features of the nearest object of each type, besides the way to it."""
CONFLICT_FEATURES = ("rivalry_max", "rivalry_avoid_count")
AT = {name: i for i, name in enumerate(OWN)}
NOBODY = 30_000
"""How far away nobody is."""


def feature_names(layout: Layout) -> list[str]:
    """The name of every feature, in order."""
    types = layout.scenario.types
    ways = [f"{kind}_{name}" for kind in types for name in WAY]
    return [*OWN, *ways, *(f"{kind}_{name}" for kind in types for name in OF_A_TYPE)]


def neighbours(state: State, layout: Layout) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """[B, A] who is nearest (-1 for nobody), how many tiles away, and how many are within five."""
    towns, agents = state.present.shape
    if agents == 1:
        nobody = np.full((towns, 1), -1)
        return nobody, np.full((towns, 1), NOBODY), np.zeros((towns, 1))
    x, y = layout.column.take(state.cell), layout.row.take(state.cell)
    apart = np.abs(x[:, :, None] - x[:, None, :])
    apart += np.abs(y[:, :, None] - y[:, None, :])
    apart += _oneself(agents)
    if np.count_nonzero(state.present) < state.present.size:
        apart[~np.broadcast_to(state.present[:, None, :], apart.shape)] = NOBODY
    nearest, far = apart.argmin(axis=2), apart.min(axis=2)
    nearest[far >= NOBODY] = -1
    return nearest, far, (apart <= 5).sum(axis=2)


@lru_cache(maxsize=64)
def _oneself(agents: int) -> np.ndarray:
    """[A, A]: nobody is near to oneself."""
    return np.eye(agents, dtype=np.int16) * np.int16(NOBODY)


def features(
    state: State, layout: Layout, utilities: Utilities, near: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> np.ndarray:
    """[B, A, F] float32, each about 1 in size; zeros for agents that are not there."""
    towns, agents = state.present.shape
    types, own = layout.types, len(OWN)
    out = np.zeros((towns, agents, own + types * (len(WAY) + len(OF_A_TYPE))), np.float32)
    _self(out, state, layout)
    _town(out, state, layout, utilities)
    _social(out, state, layout, near)
    if layout.somebody_works:
        _job(out, state, layout)
    if types:
        out[:, :, own : own + types * len(WAY)] = layout.way_to_types[state.cell]
        _queues(out[:, :, own + types * len(WAY) :], state, layout)
    if np.count_nonzero(state.present) < state.present.size:
        out[~state.present] = 0.0
    return out


def _self(out: np.ndarray, state: State, layout: Layout) -> None:
    out[:, :, 0:3] = state.needs
    out[:, :, AT["wallet"]] = np.minimum(state.wallet, 5.0) * 0.2
    out[:, :, AT["embedding_slot_norm"]] = np.arange(state.present.shape[1]) / max(1, state.present.shape[1] - 1)
    out[:, :, AT["ctx_reset_flag"]] = state.age == 0
    out[:, :, AT["chat_ready"]] = state.chat_at <= state.tick[:, None]
    out[:, :, AT["last_action_id"]] = state.last_action * (1.0 / (USE + layout.types))
    out[:, :, AT["last_action_success"]] = state.last_ok
    out[:, :, AT["using"]] = state.using >= 0
    out[:, :, AT["use_left"]] = state.use_left * 0.02
    waits = state.queued >= 0
    out[:, :, AT["in_queue"]] = waits
    out[:, :, AT["waited"]] = np.minimum((state.tick[:, None] - state.since) * waits, 50) * 0.02
    first = AT["personality_extroversion"]
    out[:, :, first : first + 3] = layout.character


def _town(out: np.ndarray, state: State, layout: Layout, utilities: Utilities) -> None:
    scenario = layout.scenario
    first = AT["time_sin"]
    out[:, :, first : first + 2] = layout.clock.take(state.tick % scenario.ticks_per_day, axis=0)[:, None]
    for name, values in (
        ("episode_progress", state.tick / scenario.ticks),
        ("price", utilities.price * 0.5),
        ("meals", np.minimum(state.meals, 10) * 0.1),
    ):
        out[:, :, AT[name]] = values[:, None]
    for name, needy in (("power", layout.power), ("water", layout.water)):
        cut = layout.scenario.perturbations.events and np.count_nonzero(needy)
        out[:, :, AT[name]] = utilities.usable[:, needy].all(axis=1, keepdims=True) if cut else 1.0


def _social(out: np.ndarray, state: State, layout: Layout, near: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    nearest, apart, around = near
    first = first_agent(*state.present.shape)
    x, y = layout.column.take(state.cell), layout.row.take(state.cell)
    scale = 1.0 / (layout.width + layout.height)
    someone = nearest >= 0
    other = nearest + first
    out[:, :, AT["nearest_agent_dx"]] = (x.take(other) - x) * someone * (1.0 / layout.width)
    out[:, :, AT["nearest_agent_dy"]] = (y.take(other) - y) * someone * (1.0 / layout.height)
    out[:, :, AT["nearest_agent_distance"]] = np.minimum(apart * scale, 1.0)
    out[:, :, AT["neighbor_agent_ratio"]] = around / max(1, state.present.shape[1] - 1)
    out[:, :, AT["rival_distance"]] = 1.0
    if not np.count_nonzero(state.tie_with >= 0):
        return
    rivalry, trust = state.rivalry, state.trust
    peak = strongest_of(rivalry)
    out[:, :, AT["rivalry_max"]] = peak
    avoid = rivalry >= max(layout.scenario.rivalry.avoid_threshold, 1e-9)
    if np.count_nonzero(avoid):
        out[:, :, AT["rivalry_avoid_count"]] = avoid.sum(axis=2)
    places = rivalry.shape[2]
    out[:, :, AT["social_trust_mean"]] = added(trust) / places
    out[:, :, AT["social_trust_max"]] = strongest_of(trust)
    out[:, :, AT["social_rivalry_mean"]] = added(rivalry) / places
    out[:, :, AT["social_familiarity_max"]] = strongest_of(state.familiarity)
    if np.count_nonzero(peak):
        rival = state.tie_with.take(rivalry.argmax(axis=2) + first_place(*state.tie_with.shape))
        real = (peak > 0) & (rival >= 0)
        at = rival + first
        dx, dy = (x.take(at) - x) * real, (y.take(at) - y) * real
        out[:, :, AT["rival_dx"]], out[:, :, AT["rival_dy"]] = dx / layout.width, dy / layout.height
        out[:, :, AT["rival_distance"]] = np.where(real, np.minimum((np.abs(dx) + np.abs(dy)) * scale, 1.0), 1.0)


def _job(out: np.ndarray, state: State, layout: Layout) -> None:
    scenario, shift = layout.scenario, state.shift
    clock = (state.tick % scenario.ticks_per_day)[:, None]
    has = layout.has_job
    due = has & (clock >= layout.job_start) & (clock < layout.job_end)
    day = 1.0 / scenario.ticks_per_day
    out[:, :, AT["lateness_counter"]] = np.minimum(state.lateness, 10) * 0.1
    out[:, :, AT["on_shift"]] = due
    out[:, :, AT["attendance_ratio"]] = state.present_ticks / np.maximum(state.shift_ticks, 1)
    out[:, :, AT["wages_withheld"]] = np.minimum(state.withheld, 2.0) * 0.5
    for name, which in (
        ("pre", (IDLE, AWAIT)),
        ("on_time", (ON_TIME,)),
        ("late", (LATE,)),
        ("absent", (ABSENT,)),
        ("post", (POST,)),
    ):
        out[:, :, AT[f"shift_{name}"]] = np.isin(shift, which) & has
    ahead = (layout.job_start - clock) % scenario.ticks_per_day
    out[:, :, AT["job_starts_in"]] = np.where(has & ~due, np.minimum(ahead, 50) * 0.02, 0.0)
    out[:, :, AT["job_ends_in"]] = np.where(due, (layout.job_end - clock) * day, 0.0)
    out[:, :, AT["at_work"]] = (layout.distance[layout.job_object, state.cell] <= 1) & has
    first = AT["job_dx"]
    out[:, :, first : first + len(WAY)] = layout.way[layout.job_object, state.cell]


def _queues(out: np.ndarray, state: State, layout: Layout) -> None:
    """[B, A, types · 4]: the nearest object of each type is in use; its queue; my cooldown; it is mine, or I wait for it."""
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
