"""Objects and their queues: requests, order, pushing and conflicts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surefoot.town.sim.events import Happenings
from surefoot.town.sim.layout import LEAVE, REACH, USE, Layout, first_of_each
from surefoot.town.sim.relationships import HANDOVER, SHARED_MEAL, both_ways
from surefoot.town.sim.state import State, add_count

# Intensity of a conflict, and more per further agent in the queue; limits of the sum. The original town's numbers
# (docs/explain/origins.md), so that counts can be compared with its records.
GHOST_STEP, LONGER_QUEUE = 1.5, 0.25
LEAST_INTENSITY, MOST_INTENSITY = 0.1, 5.0
BLACKOUT, OUTAGE = 1, 2
"""Indices into PERTURBATIONS; 0 is a price spike."""


@dataclass(slots=True)
class Utilities:
    """A town's prices and services under the current event."""

    price: np.ndarray
    """[B]: factor of all costs."""
    usable: np.ndarray
    """[B, types] bool: the type has the power and water it needs."""


def release(state: State, town: np.ndarray, agent: np.ndarray) -> None:
    """End what these agents use or wait for, without effect and cooldown; `state` changes."""
    thing = state.using[town, agent]
    held = thing >= 0
    state.user[town[held], thing[held]] = -1
    state.using[town, agent], state.queued[town, agent], state.use_left[town, agent] = -1, -1, 0


def finish_uses(state: State, layout: Layout, utilities: Utilities, happened: Happenings) -> None:
    """Advance all uses by a tick; those that end take effect. `state` changes."""
    busy = state.using >= 0
    if not np.count_nonzero(busy):
        return
    state.use_left[...] -= busy
    who = np.flatnonzero(busy & (state.use_left <= 0))
    if not len(who):
        return
    town, agent = np.divmod(who, busy.shape[1])
    thing = state.using.take(who)
    kind = layout.kind[thing]
    needs, wallet = state.needs.reshape(-1, 3), state.wallet.reshape(-1)
    needs[who] = np.minimum(np.maximum(needs.take(who, axis=0) + layout.effect[kind], 0.0), 1.0)
    if layout.somebody_pays:
        wallet[who] = np.maximum(wallet.take(who) - layout.cost[kind] * utilities.price[town], 0.0)
    if layout.somebody_cooks:
        np.add.at(state.meals, town, layout.makes[kind])
    state.ready_at[town, agent, thing] = state.tick[town] + layout.scenario.queue.cooldown
    state.user[town, thing], state.last_user[town, thing] = -1, agent
    state.using[town, agent] = -1
    add_count(state, "use_events", town)
    happened.add("use_done", town, agent, -1, thing)
    for word, count in (("shower", "shower_complete_events"), ("bed", "sleep_complete_events")):
        if word in layout.scenario.types:
            add_count(state, count, town[kind == layout.scenario.types.index(word)])
    _share_meals(state, layout, town, agent, kind, happened)


def _share_meals(
    state: State, layout: Layout, town: np.ndarray, agent: np.ndarray, kind: np.ndarray, happened: Happenings
) -> None:
    """Count a shared meal for two agents who ate within ten ticks, two tiles from each other."""
    eats = layout.is_meal[kind]
    if not np.count_nonzero(eats):
        return
    town, agent = town[eats], agent[eats]
    state.ate_at[town, agent] = state.tick[town]
    y, x = np.divmod(state.cell[town], layout.width)
    rows = np.arange(len(town))
    near = np.abs(x - x[rows, agent][:, None]) + np.abs(y - y[rows, agent][:, None]) <= 2
    near &= (state.tick[town][:, None] - state.ate_at[town] <= 10) & state.present[town]
    near[rows, agent] = False
    row, other = np.nonzero(near)
    # Two agents who finish in the same tick are each other's neighbour: count the pair once.
    twice = (state.ate_at[town[row], other] == state.tick[town[row]]) & (other < agent[row])
    row, other = row[~twice], other[~twice]
    if len(row):
        both_ways(state, town[row], agent[row], other, SHARED_MEAL)
        add_count(state, "shared_meal_events", town[row])
        happened.add("shared_meal", town[row], agent[row], other)


def walk_away(state: State, layout: Layout, action: np.ndarray) -> None:
    """Apply `leave`; an agent out of reach of its object loses its place in the queue. `state` changes."""
    leaves = action == LEAVE
    if layout.scenario.queue.commit:
        leaves &= state.using < 0
    if np.count_nonzero(leaves):
        release(state, *np.nonzero(leaves))
    waits = state.queued >= 0
    if np.count_nonzero(waits):
        out = waits & (layout.distance[np.maximum(state.queued, 0), state.cell] > REACH)
        state.queued[out] = -1


def request(
    state: State, layout: Layout, action: np.ndarray, utilities: Utilities, happened: Happenings
) -> tuple[np.ndarray, np.ndarray]:
    """Agents that request an object join its queue, or push if they are in it already. `state` changes.

    Return the agents that pushed, and those whose request was denied, [B, A] bool both.
    """
    nobody = np.zeros(action.shape, np.bool_)
    who = np.flatnonzero((action >= USE) & (state.using < 0) & state.present)
    if not len(who):
        return nobody, nobody
    town, agent = np.divmod(who, action.shape[1])
    kind = action.take(who) - USE
    thing = layout.reach_row[state.cell.take(who), kind]
    in_reach = thing >= 0
    cooling = in_reach & (state.ready_at[town, agent, np.maximum(thing, 0)] > state.tick[town])
    if np.count_nonzero(cooling):
        add_count(state, "cooldown_events", town[cooling])
    fine = in_reach & ~cooling & can_pay(state, layout, utilities, town, agent, kind)
    denied = nobody
    if np.count_nonzero(fine) < len(fine):
        denied = nobody.copy()
        denied[town[~fine], agent[~fine]] = True
        town, agent, thing = town[fine], agent[fine], thing[fine]
    waits = state.queued[town, agent] == thing
    _join(state, town[~waits], agent[~waits], thing[~waits])
    pushers = nobody
    if np.count_nonzero(waits):
        pushers = nobody.copy()
        pushers[town[waits], agent[waits]] = True
        _push(state, layout, town[waits], agent[waits], thing[waits], happened)
    return pushers, denied


def can_pay(
    state: State, layout: Layout, utilities: Utilities, town: np.ndarray, agent: np.ndarray, kind: np.ndarray
) -> np.ndarray:
    """Return whether services, money and a meal for a use of that kind are available, [n] bool."""
    fine = np.ones(len(town), np.bool_)
    if layout.somebody_pays:
        fine &= state.wallet[town, agent] >= layout.cost[kind] * utilities.price[town]
    if layout.scenario.perturbations.events:
        fine &= utilities.usable[town, kind]
    if layout.somebody_eats:
        fine &= ~layout.takes[kind] | (state.meals[town] > 0)
    return fine


def _join(state: State, town: np.ndarray, agent: np.ndarray, thing: np.ndarray) -> None:
    """Draw tickets; the order of agents that join in the same tick rotates from tick to tick."""
    if not len(town):
        return
    state.queued[town, agent], state.since[town, agent] = thing, state.tick[town]
    agents, things = state.present.shape[1], state.user.shape[1]
    turn = (agent + state.tick[town]) % agents
    key = town * things + thing
    order = np.lexsort((turn, key))
    first = first_of_each(key[order])
    places = np.arange(len(order))
    rank = places - np.maximum.accumulate(places * first)
    town, agent, thing = town[order], agent[order], thing[order]
    state.ticket[town, agent] = state.tickets[town, thing] + rank
    np.add.at(state.tickets, (town, thing), 1)


def _push(
    state: State, layout: Layout, town: np.ndarray, agent: np.ndarray, thing: np.ndarray, happened: Happenings
) -> None:
    """Count pushes; at the limit there is a conflict, and the head of the queue steps back."""
    in_use = state.user[town, thing] >= 0
    town, agent, thing = town[in_use], agent[in_use], thing[in_use]
    if not len(town):
        return
    np.add.at(state.pushes, (town, thing), 1)
    over = state.pushes[town, thing] >= layout.scenario.queue.ghost_step_after
    town, agent, thing = town[over], agent[over], thing[over]
    if not len(town):
        return
    things, agents = state.user.shape[1], state.present.shape[1]
    turn = (agent + state.tick[town]) % agents
    key = town * things + thing
    order = np.lexsort((turn, key))
    chosen = order[first_of_each(key[order])]
    town, agent, thing = town[chosen], agent[chosen], thing[chosen]
    state.pushes[town, thing] = 0
    waits = state.queued[town] == thing[:, None]
    priority = _priority(state, layout, town[:, None], np.arange(agents)[None])
    head, length = np.where(waits, priority, np.inf).argmin(axis=1), waits.sum(axis=1)
    rotates = head != agent
    rival = np.where(rotates, head, state.user[town, thing])
    state.ticket[town[rotates], head[rotates]] = state.tickets[town[rotates], thing[rotates]]
    state.tickets[town[rotates], thing[rotates]] += 1
    intensity = (GHOST_STEP + LONGER_QUEUE * np.maximum(length - 1, 0)).clip(LEAST_INTENSITY, MOST_INTENSITY)
    for name, amount in (
        ("rotation_events", rotates),
        ("ghost_step_events", 1.0),
        ("queue_conflict_events", 1.0),
        ("queue_conflict_intensity_sum", intensity),
    ):
        add_count(state, name, town, amount)
    forgives = 1.0 - 0.3 * layout.character[agent, 1]
    both_ways(state, town, agent, rival, (0.0, -0.05, layout.scenario.rivalry.conflict * intensity * forgives))
    happened.add("queue_conflict", town, agent, rival, thing, intensity)


def _priority(state: State, layout: Layout, town: np.ndarray, agent: np.ndarray) -> np.ndarray:
    """Return the priority, lower is earlier: the ticket minus the weighted waiting time."""
    waited = state.tick[town] - state.since[town, agent]
    return state.ticket[town, agent] - layout.scenario.queue.age_weight * waited


def promote(state: State, layout: Layout, utilities: Utilities, happened: Happenings) -> None:
    """Give free objects to the first agent in their queue, which starts its use in this tick. `state` changes."""
    waits = state.queued >= 0
    if not np.count_nonzero(waits):
        return
    who = np.flatnonzero(waits)
    town, agent = np.divmod(who, waits.shape[1])
    thing = state.queued.take(who)
    kind = layout.kind[thing]
    free = (state.user[town, thing] < 0) & can_pay(state, layout, utilities, town, agent, kind)
    town, agent, thing = town[free], agent[free], thing[free]
    if not len(town):
        return
    key = town * state.user.shape[1] + thing
    order = np.lexsort((_priority(state, layout, town, agent), key))
    chosen = order[first_of_each(key[order])]
    town, agent, thing = town[chosen], agent[chosen], thing[chosen]
    kind = layout.kind[thing]
    if layout.somebody_eats:
        town, agent, thing, kind = _take_meals(state, layout, town, agent, thing, kind)
    state.user[town, thing], state.using[town, agent], state.queued[town, agent] = agent, thing, -1
    state.use_left[town, agent], state.pushes[town, thing] = layout.duration[kind], 0
    before = state.last_user[town, thing]
    polite = (state.since[town, agent] < state.tick[town]) & (before >= 0) & (before != agent)
    if np.count_nonzero(polite):
        both_ways(state, town[polite], agent[polite], before[polite], HANDOVER)
        add_count(state, "handover_events", town[polite])
        happened.add("handover", town[polite], agent[polite], before[polite], thing[polite])


def _take_meals(
    state: State, layout: Layout, town: np.ndarray, agent: np.ndarray, thing: np.ndarray, kind: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Take the meals of uses that start from the stock; the last meal goes to the first of two."""
    keep = np.ones(len(town), np.bool_)
    for i in np.flatnonzero(layout.takes[kind]):
        if state.meals[town[i]] > 0:
            state.meals[town[i]] -= 1
        else:
            keep[i] = False
    return town[keep], agent[keep], thing[keep], kind[keep]
