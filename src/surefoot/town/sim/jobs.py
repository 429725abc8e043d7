"""Shifts: punctual, late and absent agents, wages and evictions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surefoot.town.sim.events import Happenings
from surefoot.town.sim.layout import REACH, Layout
from surefoot.town.sim.relationships import HELPED_WHEN_LATE, TOOK_SHIFT, Deltas, both_ways
from surefoot.town.sim.state import ABSENT, AWAIT, COUNT, LATE, ON_TIME, POST, State, add_count


@dataclass(slots=True)
class Pay:
    """The result of work in a tick, [B, A] each."""

    earned: np.ndarray
    """Wage paid minus wage withheld."""
    punctual: np.ndarray
    """bool."""
    must_leave: np.ndarray
    """bool: evicted for too many missed shifts."""


def work(state: State, layout: Layout, happened: Happenings) -> Pay | None:
    """Advance all shifts by a tick; return None in a town without jobs. `state` changes."""
    if not layout.somebody_works:
        return None
    rules, scenario = layout.scenario.employment, layout.scenario
    clock = state.tick % scenario.ticks_per_day
    employed = layout.has_job & state.present
    elapsed, on_duty = shift_now(state, layout)
    at_job = at_work(state, layout)
    # A shift begins in the state AWAIT; `gone_for` counts the ticks in a row away from work.
    state.shift[employed & (elapsed == 0)] = AWAIT
    state.gone_for[employed & (elapsed == 0)] = 0
    state.gone_for[...] += on_duty & ~at_job
    state.gone_for[at_job] = 0
    # From AWAIT to ON_TIME or LATE on arrival; to ABSENT after the cutoff, or by leaving for too long.
    shift = state.shift
    on_time = on_duty & at_job & (shift == AWAIT) & (elapsed <= rules.grace)
    late = on_duty & at_job & (shift == AWAIT) & (elapsed > rules.grace)
    never_came = on_duty & ~at_job & (shift == AWAIT) & (elapsed > rules.absent_cutoff)
    left_early = on_duty & ~at_job & ((shift == ON_TIME) | (shift == LATE)) & (state.gone_for > rules.absence_slack)
    absent = never_came | left_early
    shift[on_time], shift[late], shift[absent] = ON_TIME, LATE, ABSENT
    last_tick = on_duty & (layout.shift_left.take(clock, axis=0) == 1)
    missed = last_tick & (shift == ABSENT)
    # Fees, penalties, and colleagues who stand in.
    withheld = np.zeros(employed.shape)
    if np.count_nonzero(late):
        state.lateness[...] += late
        state.wallet[late] = np.maximum(state.wallet - layout.late_fee, 0.0)[late]
        withheld[late] += np.broadcast_to(layout.late_fee, late.shape)[late] * 0.5
        happened.add("shift_late_start", *np.nonzero(late))
        _stand_in(
            state, layout, late, at_job & on_duty, happened, HELPED_WHEN_LATE, "late_help_events helped_when_late"
        )
    if np.count_nonzero(absent):
        withheld[absent] += rules.absence_penalty
        happened.add("shift_absent", *np.nonzero(absent))
        happened.add("shift_departed_early", *np.nonzero(left_early))
        _stand_in(state, layout, absent, at_job & on_duty, happened, TOOK_SHIFT, "shift_takeover_events took_my_shift")
    state.absences[...] += missed
    # Wages are paid per tick of work; after the grace period every tick away costs a penalty.
    working = on_duty & at_job & ((shift == ON_TIME) | (shift == LATE))
    away = on_duty & ~at_job & (elapsed > rules.grace)
    withheld += rules.late_tick_penalty * away
    paid = layout.wage * working
    state.wallet[...] += paid
    state.wages[...] += paid
    state.withheld[...] += withheld
    punctual = working & (shift == ON_TIME)
    state.shift_ticks[...] += on_duty
    state.present_ticks[...] += on_duty & at_job
    state.punctual_ticks[...] += punctual
    state.shift[last_tick & (shift != ABSENT)] = POST
    counts = state.counts
    counts[:, COUNT["wages_sum"]] += paid.sum(axis=1)
    counts[:, COUNT["shift_ticks"]] += on_duty.sum(axis=1)
    counts[:, COUNT["punctual_ticks"]] += punctual.sum(axis=1)
    state.exits[clock == 0] = 0
    return Pay(earned=paid - withheld, punctual=punctual, must_leave=_leaving(state, layout, missed))


def shift_now(state: State, layout: Layout) -> tuple[np.ndarray, np.ndarray]:
    """Return the ticks since each agent's shift began (-1 outside of it), and whether it is on duty now, [B, A] both.

    A shift over midnight that would have begun before the episode is not worked.
    """
    elapsed = layout.shift_elapsed.take(state.tick % layout.scenario.ticks_per_day, axis=0)
    return elapsed, (elapsed >= 0) & (elapsed <= state.tick[:, None]) & state.present


def at_work(state: State, layout: Layout) -> np.ndarray:
    """Return whether each agent is next to its workplace, [B, A] bool."""
    return (layout.distance[layout.job_object, state.cell] <= REACH) & state.present


def _stand_in(
    state: State, layout: Layout, away: np.ndarray, at_job: np.ndarray, happened: Happenings, deltas: Deltas, names: str
) -> None:
    """Let a present colleague stand in for each agent that is away; `names` are the counter and the event."""
    town, agent = np.nonzero(away)
    same = (layout.job_number[None] == layout.job_number[agent][:, None]) & (at_job & ~away)[town]
    same[np.arange(len(agent)), agent] = False
    has_colleague = same.any(axis=1)
    town, agent, other = town[has_colleague], agent[has_colleague], same.argmax(axis=1)[has_colleague]
    count, event = names.split()
    both_ways(state, town, agent, other, deltas)
    add_count(state, count, town)
    happened.add(event, town, agent, other)


def _leaving(state: State, layout: Layout, missed: np.ndarray) -> np.ndarray:
    """Return the agents to evict for missed shifts, [B, A] bool; at most `daily_exits` per day, lowest numbers first."""
    rules = layout.scenario.employment
    due = missed & (state.absences >= rules.max_absent_shifts)
    if not np.count_nonzero(due):
        return due
    exits = due.cumsum(axis=1) + state.exits[:, None]
    evicted = due & (exits <= rules.daily_exits)
    state.exits[...] += evicted.sum(axis=1).astype(np.int32)
    return evicted
