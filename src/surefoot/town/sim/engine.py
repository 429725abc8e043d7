"""How towns are stepped and observed: by numpy, which is the definition, or by the C kernel, which is faster."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from surefoot import native
from surefoot.town.scenarios.scenario import PERTURBATIONS
from surefoot.town.sim.events import EVENT, Happenings
from surefoot.town.sim.layout import Layout
from surefoot.town.sim.observe import action_mask, feature_names, features, neighbours
from surefoot.town.sim.rewards import PARTS
from surefoot.town.sim.state import STATE_NAMES, Randomness, State
from surefoot.town.sim.tick import TickOutcome, perturb, tick, utilities_of


class TownEngine(Protocol):
    """Steps and observes towns of one layout."""

    def tick(self, state: State, action: np.ndarray, rng: Randomness) -> tuple[State, TickOutcome]:
        """Return the towns one tick later and the result; `action` is [B, A]."""
        ...

    def view(self, state: State) -> tuple[np.ndarray, np.ndarray]:
        """Return the features [B, A, F] and the allowed actions [B, A, actions]."""
        ...


def make_engine(layout: Layout) -> TownEngine:
    """Return the fastest engine of this machine."""
    return NumpyEngine(layout) if native.kernel is None else KernelEngine(layout)


class NumpyEngine:
    """The definition, in numpy."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def tick(self, state: State, action: np.ndarray, rng: Randomness) -> tuple[State, TickOutcome]:
        return tick(self.layout, state, action, rng)

    def view(self, state: State) -> tuple[np.ndarray, np.ndarray]:
        utilities, near = utilities_of(state, self.layout), neighbours(state, self.layout)
        mask = action_mask(state, self.layout, utilities, near[0], near[1])
        return features(state, self.layout, utilities, near), mask


class KernelEngine:
    """The same in C (town.h); it holds the tables of the layout."""

    def __init__(self, layout: Layout) -> None:
        assert native.kernel is not None
        self.layout, self.kernel = layout, native.kernel
        self.features, self.actions = len(feature_names(layout)), layout.actions
        self.town = self.make_town()

    def make_town(self) -> Any:
        """Return the kernel's tables of the layout."""
        layout, events = self.layout, self.layout.scenario.perturbations.events
        return self.kernel.town_new(
            A=layout.agents,
            O=layout.objects,
            T=layout.types,
            E=min(layout.scenario.rivalry.max_ties, max(1, layout.agents - 1)),
            cells=len(layout.floor),
            day=layout.scenario.ticks_per_day,
            events=len(events),
            rules=_rules(layout),
            event_kind_of=np.array([PERTURBATIONS.index(e.kind) for e in events], np.int64),
            event_factor=np.array([e.factor for e in events], np.float64),
            **{name: getattr(layout, name) for name in _TABLES},
        )

    def tick(self, state: State, action: np.ndarray, rng: Randomness) -> tuple[State, TickOutcome]:
        after, happened = state.copy(), Happenings()
        if self.layout.scenario.perturbations.events:
            perturb(after, self.layout, rng, happened)
        size = action.shape
        outcome = TickOutcome(
            acted=np.empty(size, np.bool_),
            terminated=np.empty(size, np.bool_),
            reward=np.empty(size),
            parts=np.empty((*size, len(PARTS))),
            rivalry=np.empty(size),
            avoid=np.empty(size, np.int64),
            happened=happened,
        )
        events = self.kernel.town_tick(
            self.town,
            size[0],
            *[getattr(after, name) for name in STATE_NAMES],
            np.ascontiguousarray(action, np.int64),
            rng.world.bit_generator.capsule,
            outcome.acted,
            outcome.terminated,
            outcome.reward,
            outcome.parts,
            outcome.rivalry,
            outcome.avoid,
        )
        if events:
            happened.table = np.frombuffer(events, EVENT)
        return after, outcome

    def view(self, state: State) -> tuple[np.ndarray, np.ndarray]:
        values = np.empty((*state.present.shape, self.features), np.float32)
        mask = np.empty((*state.present.shape, self.actions), np.bool_)
        arrays: list[Any] = [getattr(state, name) for name in STATE_NAMES]
        self.kernel.town_view(self.town, state.towns, *arrays, values, mask)
        return values, mask


_TABLES = (
    "step", "duration", "makes", "shift_elapsed", "shift_left", "shift_ahead", "distance", "kind", "reach_row", "column", "row",
    "job_object", "job_number", "nearest_row", "way", "way_to_types", "clock", "character", "effect", "cost", "factor", "wage",
    "late_fee", "takes", "is_meal", "power", "water", "has_job",
)  # fmt: skip
"""Tables of `Layout` that the kernel reads."""


def _rules(layout: Layout) -> np.ndarray:
    """Return the numbers of a scenario in the order of `sf_town_rules`."""
    s, types = layout.scenario, list(layout.scenario.types)
    queue, social, job, reward = s.queue, s.rivalry, s.employment, s.rewards
    kinds = [types.index(word) if word in types else -1 for word in ("shower", "bed")]
    numbers = [
        *(queue.cooldown, queue.ghost_step_after, queue.age_weight, queue.commit, queue.guardrail),
        *(social.conflict, social.decay, social.avoid_threshold, social.eviction_threshold, social.chafe),
        *(social.chafe_distance, social.chat_cooldown),
        *(job.grace, job.absent_cutoff, job.absence_slack, job.late_tick_penalty, job.absence_penalty),
        *(job.max_absent_shifts, job.daily_exits),
        *(reward.survival, reward.wage, reward.punctuality, reward.commute, reward.commute_ahead, reward.chat),
        *(reward.conflict, reward.waiting, reward.avoidance, reward.rivalry, reward.faint, reward.eviction),
        *(reward.clip, reward.social, s.lifecycle.faint_at, s.lifecycle.respawn_delay, s.ticks, s.ticks_per_day),
        *(layout.width, layout.height, *kinds, layout.somebody_works),
        *(*layout.decay, *layout.need_cost, *layout.wanting),
    ]
    return np.array(numbers, np.float64)
