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
    since = clock[:, None] - layout.job_start
    due = employed & (since >= 0) & (clock[:, None] < layout.job_end)
    at_job = at_work(state, layout)
    state.shift[employed & (since == 0)] = AWAIT
    state.gone_for[employed & (since == 0)] = 0
    state.gone_for[...] += due & ~at_job
    state.gone_for[at_job] = 0
    shift = state.shift
    on_time = due & at_job & (shift == AWAIT) & (since <= rules.grace)
    late = due & at_job & (shift == AWAIT) & (since > rules.grace)
    never = due & ~at_job & (shift == AWAIT) & (since > rules.absent_cutoff)
    left = due & ~at_job & ((shift == ON_TIME) | (shift == LATE)) & (state.gone_for > rules.absence_slack)
    absent = never | left
    shift[on_time], shift[late], shift[absent] = ON_TIME, LATE, ABSENT
    over = employed & (clock[:, None] == layout.job_end - 1)
    missed = over & (shift == ABSENT)
    withheld = np.zeros(employed.shape)
    if np.count_nonzero(late):
        state.lateness[...] += late
        state.wallet[late] = np.maximum(state.wallet - layout.late_fee, 0.0)[late]
        withheld[late] += np.broadcast_to(layout.late_fee, late.shape)[late] * 0.5
        happened.add("shift_late_start", *np.nonzero(late))
        _stand_in(state, layout, late, at_job & due, happened, HELPED_WHEN_LATE, "late_help_events helped_when_late")
    if np.count_nonzero(absent):
        withheld[absent] += rules.absence_penalty
        happened.add("shift_absent", *np.nonzero(absent))
        happened.add("shift_departed_early", *np.nonzero(left))
        _stand_in(state, layout, absent, at_job & due, happened, TOOK_SHIFT, "shift_takeover_events took_my_shift")
    state.absences[...] += missed
    working = due & at_job & ((shift == ON_TIME) | (shift == LATE))
    slow = due & ~at_job & (since > rules.grace)
    withheld += rules.late_tick_penalty * slow
    paid = layout.wage * working
    state.wallet[...] += paid
    state.wages[...] += paid
    state.withheld[...] += withheld
    punctual = working & (shift == ON_TIME)
    state.shift_ticks[...] += due
    state.present_ticks[...] += due & at_job
    state.punctual_ticks[...] += punctual
    state.shift[over & (shift != ABSENT)] = POST
    counts = state.counts
    counts[:, COUNT["wages_sum"]] += paid.sum(axis=1)
    counts[:, COUNT["shift_ticks"]] += due.sum(axis=1)
    counts[:, COUNT["punctual_ticks"]] += punctual.sum(axis=1)
    state.exits[clock == 0] = 0
    return Pay(earned=paid - withheld, punctual=punctual, must_leave=_leaving(state, layout, missed))


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
    wants = missed & (state.absences >= rules.max_absent_shifts)
    if not np.count_nonzero(wants):
        return wants
    place = wants.cumsum(axis=1) + state.exits[:, None]
    goes = wants & (place <= rules.daily_exits)
    state.exits[...] += goes.sum(axis=1).astype(np.int32)
    return goes
