"""Everything that moves in many towns at once, as arrays [towns, agents, …]; and how an episode begins."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.errors import CheckpointIncompatible
from surefoot.town.sim.layout import Layout

IDLE, AWAIT, ON_TIME, LATE, ABSENT, POST = range(6)
"""States of a shift."""
SHIFT_STATES = ("pre", "await", "on_time", "late", "absent", "post")

COUNTS = (
    "queue_conflict_events",
    "queue_conflict_intensity_sum",
    "shared_meal_events",
    "late_help_events",
    "shift_takeover_events",
    "chat_success_events",
    "chat_failure_events",
    "chat_quality_sum",
    "utility_outage_events",
    "shower_complete_events",
    "sleep_complete_events",
    "cooldown_events",
    "ghost_step_events",
    "rotation_events",
    "handover_events",
    "use_events",
    "waiting_ticks",
    "unserved_ticks",
    "agent_ticks",
    "need_deficit_sum",
    "rivalry_max_sum",
    "rivalry_avoid_sum",
    "wages_sum",
    "shift_ticks",
    "punctual_ticks",
    "faint_events",
    "eviction_events",
    "return_sum",
)
"""What a town counts, from the start of its episode."""
COUNT = {name: i for i, name in enumerate(COUNTS)}


def _array(axes: str, dtype: Any = np.float64, fill: float = 0) -> Any:
    """Declare an array of `State`: the letters of its axes, its type, and what it holds when an episode begins."""
    return dataclasses.field(metadata={"axes": axes, "dtype": dtype, "fill": fill})


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """B towns of A agents with O objects and E remembered ties each. Arrays are [B, A] unless said otherwise."""

    tick: np.ndarray = _array("B", np.int32)
    """[B] int32: ticks of this episode so far."""
    here: np.ndarray = _array("BA", np.bool_, True)
    """bool: the agent is in town."""
    back_at: np.ndarray = _array("BA", np.int32)
    """int32: tick at which somebody new takes an empty place."""
    age: np.ndarray = _array("BA", np.int32)
    """int32: ticks that the agent has been here."""
    cell: np.ndarray = _array("BA", np.int32)
    """int32."""
    needs: np.ndarray = _array("BA3")
    """[B, A, 3], 1 is satisfied."""
    wallet: np.ndarray = _array("BA")
    using: np.ndarray = _array("BA", np.int16, -1)
    """int16: the object in use, -1 for none; likewise `queued` for the one that is waited for."""
    use_left: np.ndarray = _array("BA", np.int32)
    """int32: ticks until it is done."""
    queued: np.ndarray = _array("BA", np.int16, -1)
    ticket: np.ndarray = _array("BA", np.int32)
    """int32: drawn on joining a queue; smaller is earlier."""
    since: np.ndarray = _array("BA", np.int32)
    """int32: tick of joining."""
    ready_at: np.ndarray = _array("BAO", np.int32)
    """[B, A, O] int32: tick from which an object may be used again."""
    user: np.ndarray = _array("BO", np.int16, -1)
    """[B, O] int16: who uses an object, -1 for nobody; `last_user` who did before."""
    last_user: np.ndarray = _array("BO", np.int16, -1)
    pushes: np.ndarray = _array("BO", np.int16)
    """[B, O] int16: attempts on a taken object since the last ghost step."""
    tickets: np.ndarray = _array("BO", np.int32)
    """[B, O] int32: how many were drawn."""
    meals: np.ndarray = _array("B", np.int32)
    """[B] int32: in stock."""
    tie_with: np.ndarray = _array("BAE", np.int16, -1)
    """[B, A, E] int16: whom a tie is with, -1 for a free place."""
    ties: np.ndarray = _array("BAE3")
    """[B, A, E, 3]: trust, familiarity and rivalry of each tie, 0 for a free place."""
    chat_at: np.ndarray = _array("BA", np.int32)
    """int32: tick from which one may chat again."""
    ate_at: np.ndarray = _array("BA", np.int32, -1000)
    """int32: tick of the last meal."""
    shift: np.ndarray = _array("BA", np.int8)
    """int8: IDLE … POST."""
    gone_for: np.ndarray = _array("BA", np.int32)
    """int32: ticks away from work during a shift."""
    lateness: np.ndarray = _array("BA", np.int32)
    """int32: shifts begun late."""
    absences: np.ndarray = _array("BA", np.int32)
    """int32: shifts missed."""
    withheld: np.ndarray = _array("BA")
    """Wages withheld; `wages` those paid."""
    wages: np.ndarray = _array("BA")
    shift_ticks: np.ndarray = _array("BA", np.int32)
    """int32: ticks that one should have been at work, `present_ticks` that one was, `punctual_ticks` after coming in time."""
    present_ticks: np.ndarray = _array("BA", np.int32)
    punctual_ticks: np.ndarray = _array("BA", np.int32)
    last_action: np.ndarray = _array("BA", np.int8)
    """int8; `last_ok` says whether it came to anything."""
    last_ok: np.ndarray = _array("BA", np.bool_, True)
    event: np.ndarray = _array("B", np.int8, -1)
    """[B] int8: what happens to the town, -1 for nothing; `event_left` for how long yet; `event_next` when, at random."""
    event_left: np.ndarray = _array("B", np.int32)
    event_next: np.ndarray = _array("B", np.int32, -1)
    event_kind: np.ndarray = _array("B", np.int8)
    """[B] int8: which of the scenario's random events comes next."""
    exits: np.ndarray = _array("B", np.int32)
    """[B] int32: who had to leave today."""
    counts: np.ndarray = _array("BC")
    """[B, COUNTS]."""

    @property
    def towns(self) -> int:
        """B."""
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
        """The same in memory of its own."""
        return State(**self.to_arrays())

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Every array by name, copied."""
        return {name: getattr(self, name).copy() for name in _NAMES}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> State:
        """What `to_arrays` gave."""
        missing = [name for name in _NAMES if name not in arrays]
        if missing:
            raise CheckpointIncompatible(f"the town's state lacks {', '.join(missing)}; it is of another version")
        return cls(**{name: np.array(arrays[name]) for name in _NAMES})


_NAMES = tuple(entry.name for entry in dataclasses.fields(State))


def add_count(state: State, name: str, town: np.ndarray, amount: np.ndarray | float = 1.0) -> None:
    """Count something in each of these towns, which may be named more than once; `state` changes."""
    np.add.at(state.counts[:, COUNT[name]], town, amount)


@dataclass(frozen=True, slots=True)
class Randomness:
    """The streams of random numbers that a tick draws from; a third, the policy's, belongs to whoever acts."""

    world: np.random.Generator
    """Beginnings and chats."""
    events: np.random.Generator
    """What happens to the town."""


def make_randomness(seed: int) -> Randomness:
    """Both streams from one seed."""
    from surefoot.data.seeds import seed_for

    return Randomness(
        np.random.default_rng(seed_for("town-world", seed)), np.random.default_rng(seed_for("town-events", seed))
    )


def begin(layout: Layout, towns: int, rng: Randomness) -> State:
    """`towns` towns at the beginning of an episode."""
    a, o = layout.agents, layout.objects
    e = min(layout.scenario.rivalry.max_ties, max(1, a - 1))
    scenario = layout.scenario
    sizes = {"B": towns, "A": a, "O": o, "E": e, "C": len(COUNTS), "3": 3}
    arrays = {
        entry.name: np.full(
            [sizes[axis] for axis in entry.metadata["axes"]], entry.metadata["fill"], entry.metadata["dtype"]
        )
        for entry in dataclasses.fields(State)
    }
    state = State(**arrays)
    state.meals[:] = scenario.meals
    settle(state, layout, np.ones((towns, a), np.bool_), rng)
    names = [resident.id for resident in scenario.agents]
    for pair, strength in scenario.rivalry.begin.items():
        one, other = (names.index(name) for name in pair.split("-"))
        for here, there in ((one, other), (other, one)):
            free = int((state.tie_with[0, here] >= 0).sum()) % e
            state.tie_with[:, here, free], state.rivalry[:, here, free] = there, strength
    plan_events(state, layout, np.arange(towns), rng)
    return state


def settle(state: State, layout: Layout, who: np.ndarray, rng: Randomness) -> None:
    """Let somebody new begin in the places `who` ([B, A] bool) of `state`, which changes."""
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
    state.here[who], state.age[who] = True, 0
    state.using[who], state.queued[who], state.use_left[who] = -1, -1, 0
    state.ready_at[town, agent] = 0
    state.tie_with[town, agent], state.ties[town, agent] = -1, 0.0
    state.chat_at[who], state.ate_at[who] = 0, -1000
    for array in (state.gone_for, state.lateness, state.absences, state.shift_ticks, state.present_ticks):
        array[who] = 0
    state.punctual_ticks[who], state.shift[who], state.withheld[who], state.wages[who] = 0, IDLE, 0.0, 0.0
    state.last_action[who], state.last_ok[who] = 0, True


def replace_towns(state: State, layout: Layout, over: np.ndarray, rng: Randomness) -> State:
    """`state` with new episodes in the towns that are `over` ([B] bool)."""
    count = int(np.count_nonzero(over))
    if count == state.towns:
        return begin(layout, count, rng)
    fresh, kept = begin(layout, count, rng), state.copy()
    for name in _NAMES:
        getattr(kept, name)[over] = getattr(fresh, name)
    return kept


def plan_events(state: State, layout: Layout, towns: np.ndarray, rng: Randomness) -> None:
    """Draw when the next random event comes, and which."""
    rules = layout.scenario.perturbations
    chance = [i for i, event in enumerate(rules.events) if event.tick is None]
    if not chance or not len(towns):
        return
    now = state.tick[towns]
    state.event_next[towns] = np.maximum(now, rules.grace) + rng.events.integers(1, rules.window + 1, size=len(towns))
    state.event_kind[towns] = np.array(chance)[rng.events.integers(len(chance), size=len(towns))]
