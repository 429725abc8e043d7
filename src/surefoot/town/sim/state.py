"""The state of many towns as arrays [towns, agents, …], and the start of an episode."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.data.seeds import seed_for
from surefoot.errors import CheckpointIncompatible
from surefoot.town.sim.layout import Layout

IDLE, AWAIT, ON_TIME, LATE, ABSENT, POST = range(6)
"""States of a shift."""
SHIFT_STATES = ("pre", "await", "on_time", "late", "absent", "post")

COUNTS = (
    "queue_conflict_events", "queue_conflict_intensity_sum", "shared_meal_events", "late_help_events",
    "shift_takeover_events", "chat_success_events", "chat_failure_events", "chat_quality_sum",
    "utility_outage_events", "shower_complete_events", "sleep_complete_events", "cooldown_events",
    "ghost_step_events", "rotation_events", "handover_events", "use_events", "waiting_ticks", "unserved_ticks",
    "agent_ticks", "need_deficit_sum", "rivalry_max_sum", "rivalry_avoid_sum", "wages_sum", "shift_ticks",
    "punctual_ticks", "faint_events", "eviction_events", "return_sum",
)  # fmt: skip
"""Counters of a town since the start of its episode."""
COUNT = {name: i for i, name in enumerate(COUNTS)}


def _array(axes: str, dtype: Any = np.float64, fill: float = 0) -> Any:
    """Declare an array of `State`: the letters of its axes, its dtype, and its value at the start of an episode."""
    return dataclasses.field(metadata={"axes": axes, "dtype": dtype, "fill": fill})


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """B towns with A agents, O objects and E remembered relationships per agent. Arrays are [B, A] unless noted."""

    tick: np.ndarray = _array("B", np.int32)
    """[B] int32: ticks of this episode so far."""
    present: np.ndarray = _array("BA", np.bool_, True)
    """bool: the agent is in town."""
    back_at: np.ndarray = _array("BA", np.int32)
    """int32: tick at which a new agent takes an empty place."""
    age: np.ndarray = _array("BA", np.int32)
    """int32: ticks since the agent arrived."""
    cell: np.ndarray = _array("BA", np.int32)
    """int32."""
    needs: np.ndarray = _array("BA3")
    """[B, A, 3], 1 is satisfied."""
    wallet: np.ndarray = _array("BA")
    using: np.ndarray = _array("BA", np.int16, -1)
    """int16: the object in use, -1 for none; likewise `queued` for the object the agent waits for."""
    use_left: np.ndarray = _array("BA", np.int32)
    """int32: ticks until the use ends."""
    queued: np.ndarray = _array("BA", np.int16, -1)
    ticket: np.ndarray = _array("BA", np.int32)
    """int32: drawn when joining a queue; smaller is earlier."""
    since: np.ndarray = _array("BA", np.int32)
    """int32: tick of joining the queue."""
    ready_at: np.ndarray = _array("BAO", np.int32)
    """[B, A, O] int32: tick from which the agent may use an object again."""
    user: np.ndarray = _array("BO", np.int16, -1)
    """[B, O] int16: the agent that uses an object, -1 for none; `last_user` is the one before."""
    last_user: np.ndarray = _array("BO", np.int16, -1)
    pushes: np.ndarray = _array("BO", np.int16)
    """[B, O] int16: pushes for an object in use since the last conflict."""
    tickets: np.ndarray = _array("BO", np.int32)
    """[B, O] int32: number of tickets drawn."""
    meals: np.ndarray = _array("B", np.int32)
    """[B] int32: meals in stock."""
    tie_with: np.ndarray = _array("BAE", np.int16, -1)
    """[B, A, E] int16: the other agent of a relationship, -1 for a free slot."""
    ties: np.ndarray = _array("BAE3")
    """[B, A, E, 3]: trust, familiarity and rivalry, 0 for a free slot."""
    chat_at: np.ndarray = _array("BA", np.int32)
    """int32: tick from which the agent may chat again."""
    ate_at: np.ndarray = _array("BA", np.int32, -1000)
    """int32: tick of the last meal."""
    shift: np.ndarray = _array("BA", np.int8)
    """int8: IDLE … POST."""
    gone_for: np.ndarray = _array("BA", np.int32)
    """int32: ticks away from work in a row during a shift."""
    lateness: np.ndarray = _array("BA", np.int32)
    """int32: shifts started late."""
    absences: np.ndarray = _array("BA", np.int32)
    """int32: shifts missed."""
    withheld: np.ndarray = _array("BA")
    """Wages withheld; `wages` are those paid."""
    wages: np.ndarray = _array("BA")
    shift_ticks: np.ndarray = _array("BA", np.int32)
    """int32: scheduled ticks; `present_ticks` are those at work, `punctual_ticks` those after a punctual start."""
    present_ticks: np.ndarray = _array("BA", np.int32)
    punctual_ticks: np.ndarray = _array("BA", np.int32)
    last_action: np.ndarray = _array("BA", np.int8)
    """int8; `last_ok` is False if the action was denied."""
    last_ok: np.ndarray = _array("BA", np.bool_, True)
    event: np.ndarray = _array("B", np.int8, -1)
    """[B] int8: the current event, -1 for none; `event_left` its remaining ticks; `event_next` the next random event's tick."""
    event_left: np.ndarray = _array("B", np.int32)
    event_next: np.ndarray = _array("B", np.int32, -1)
    event_kind: np.ndarray = _array("B", np.int8)
    """[B] int8: which of the scenario's random events is next."""
    exits: np.ndarray = _array("B", np.int32)
    """[B] int32: evictions today."""
    counts: np.ndarray = _array("BC")
    """[B, COUNTS]."""

    @property
    def towns(self) -> int:
        return len(self.tick)

    @property
    def trust(self) -> np.ndarray:
        """[B, A, E], a view into `ties`."""
        return self.ties[:, :, :, 0]

    @property
    def familiarity(self) -> np.ndarray:
        """[B, A, E], likewise."""
        return self.ties[:, :, :, 1]

    @property
    def rivalry(self) -> np.ndarray:
        """[B, A, E], likewise."""
        return self.ties[:, :, :, 2]

    def copy(self) -> State:
        return State(**{name: getattr(self, name).copy() for name in STATE_NAMES})

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return copies of all arrays by their names in checkpoints."""
        return {_SAVED.get(name, name): getattr(self, name).copy() for name in STATE_NAMES}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> State:
        """Return the state that `to_arrays` was called on."""
        saved = {name: _SAVED.get(name, name) for name in STATE_NAMES}
        missing = [name for name in saved.values() if name not in arrays]
        if missing:
            raise CheckpointIncompatible(
                f"the town's state has no {', '.join(missing)}; it was saved by another version"
            )
        return cls(**{name: np.array(arrays[key]) for name, key in saved.items()})


STATE_NAMES = tuple(entry.name for entry in dataclasses.fields(State))
# Names in checkpoints of earlier releases.
_SAVED = {"present": "here"}


def add_count(state: State, name: str, town: np.ndarray, amount: np.ndarray | float = 1.0) -> None:
    """Add `amount` to a counter of each of these towns, which may repeat; `state` changes."""
    np.add.at(state.counts[:, COUNT[name]], town, amount)


@dataclass(frozen=True, slots=True)
class Randomness:
    """The random generators of the simulation; the policy has its own."""

    world: np.random.Generator
    """Starts of episodes, and chats."""
    events: np.random.Generator
    """Random events."""


def make_randomness(seed: int) -> Randomness:
    """Return both generators from one seed."""
    return Randomness(
        np.random.default_rng(seed_for("town-world", seed)), np.random.default_rng(seed_for("town-events", seed))
    )


def begin(layout: Layout, towns: int, rng: Randomness) -> State:
    """Return `towns` towns at the start of an episode."""
    scenario, agents = layout.scenario, layout.agents
    slots = min(scenario.rivalry.max_ties, max(1, agents - 1))
    sizes = {"B": towns, "A": agents, "O": layout.objects, "E": slots, "C": len(COUNTS), "3": 3}
    arrays = {
        entry.name: np.full(
            [sizes[axis] for axis in entry.metadata["axes"]], entry.metadata["fill"], entry.metadata["dtype"]
        )
        for entry in dataclasses.fields(State)
    }
    state = State(**arrays)
    state.meals[:] = scenario.meals
    settle(state, layout, np.ones((towns, agents), np.bool_), rng)
    names = [resident.id for resident in scenario.agents]
    for pair, strength in scenario.rivalry.begin.items():
        one, other = (names.index(name) for name in pair.split("-"))
        for agent, rival in ((one, other), (other, one)):
            free = int((state.tie_with[0, agent] >= 0).sum()) % slots
            state.tie_with[:, agent, free], state.rivalry[:, agent, free] = rival, strength
    plan_events(state, layout, np.arange(towns), rng)
    return state


def settle(state: State, layout: Layout, who: np.ndarray, rng: Randomness) -> None:
    """Start new agents in the places `who` ([B, A] bool); `state` changes."""
    town, agent = np.nonzero(who)
    if not len(town):
        return
    spawn = layout.scenario.spawn
    cell = layout.first_cell[agent]
    for _ in range(spawn.position):
        cell = layout.step[cell, rng.world.integers(5, size=len(cell))]
    needs = layout.first_needs[agent]
    if spawn.needs:
        needs = needs + rng.world.uniform(-spawn.needs, spawn.needs, needs.shape)
    state.cell[who], state.needs[who] = cell, needs.clip(0.05, 1.0)
    state.wallet[who] = layout.first_wallet[agent]
    state.present[who], state.age[who] = True, 0
    state.using[who], state.queued[who], state.use_left[who] = -1, -1, 0
    state.ready_at[town, agent] = 0
    state.tie_with[town, agent], state.ties[town, agent] = -1, 0.0
    state.chat_at[who], state.ate_at[who] = 0, -1000
    for array in (state.gone_for, state.lateness, state.absences, state.shift_ticks, state.present_ticks):
        array[who] = 0
    state.punctual_ticks[who], state.shift[who], state.withheld[who], state.wages[who] = 0, IDLE, 0.0, 0.0
    state.last_action[who], state.last_ok[who] = 0, True


def replace_towns(state: State, layout: Layout, over: np.ndarray, rng: Randomness) -> State:
    """Return `state` with new episodes in the towns that are `over` ([B] bool)."""
    count = int(np.count_nonzero(over))
    if count == state.towns:
        return begin(layout, count, rng)
    fresh, result = begin(layout, count, rng), state.copy()
    for name in STATE_NAMES:
        getattr(result, name)[over] = getattr(fresh, name)
    return result


def plan_events(state: State, layout: Layout, towns: np.ndarray, rng: Randomness) -> None:
    """Draw the tick and the kind of the next random event; `state` changes."""
    rules = layout.scenario.perturbations
    chance = [i for i, event in enumerate(rules.events) if event.tick is None]
    if not chance or not len(towns):
        return
    now = state.tick[towns]
    state.event_next[towns] = np.maximum(now, rules.grace) + rng.events.integers(1, rules.window + 1, size=len(towns))
    state.event_kind[towns] = np.array(chance)[rng.events.integers(len(chance), size=len(towns))]
