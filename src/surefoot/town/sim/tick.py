"""One tick of many towns, as a function of state, actions and generators; the old state is not changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from surefoot.town.scenarios.scenario import PERTURBATIONS
from surefoot.town.sim.events import Happenings
from surefoot.town.sim.jobs import work
from surefoot.town.sim.layout import CHAT, FAR, NORTH, WEST, Layout
from surefoot.town.sim.queues import (
    BLACKOUT,
    OUTAGE,
    Utilities,
    finish_uses,
    promote,
    release,
    request,
    walk_away,
)
from surefoot.town.sim.relationships import FAILED_CHAT, both_ways, decay_relations, forget, strongest, tie_distance
from surefoot.town.sim.rewards import TownRewardFacts, reward
from surefoot.town.sim.state import COUNT, Randomness, State, plan_events, settle


@dataclass(slots=True, kw_only=True)
class TickOutcome:
    """The result of one tick."""

    acted: np.ndarray
    """[B, A] bool: the agent was in town, so its action counted."""
    reward: np.ndarray
    """[B, A] float64."""
    parts: np.ndarray
    """[B, A, PARTS]: the parts of the reward, before clipping."""
    terminated: np.ndarray
    """[B, A] bool: fainted or evicted."""
    rivalry: np.ndarray
    """[B, A]: each agent's strongest rivalry; `avoid` is the number of rivals to be avoided."""
    avoid: np.ndarray
    happened: Happenings = field(default_factory=Happenings)


def utilities_of(state: State, layout: Layout) -> Utilities:
    """Return the current prices, and which object types have power and water."""
    towns = state.towns
    price = np.ones(towns)
    usable = np.ones((towns, layout.types), np.bool_)
    events = layout.scenario.perturbations.events
    if events and np.count_nonzero(state.event >= 0):
        kinds = np.array([PERTURBATIONS.index(e.kind) for e in events])
        kind = np.where(state.event >= 0, kinds[state.event], -1)
        factor = np.array([e.factor for e in events])
        price = np.where(kind == 0, factor[state.event], 1.0)
        usable &= ~((kind == BLACKOUT)[:, None] & layout.power)
        usable &= ~((kind == OUTAGE)[:, None] & layout.water)
    return Utilities(price, usable)


def tick(layout: Layout, state: State, action: np.ndarray, rng: Randomness) -> tuple[State, TickOutcome]:
    """Return the towns one tick later and the result; `action` is [B, A], indices of the scenario's actions."""
    s, happened = state.copy(), Happenings()
    acted = s.present.copy()
    action = np.where(acted, action, 0)
    perturb(s, layout, rng, happened)
    utilities = utilities_of(s, layout)
    finish_uses(s, layout, utilities, happened)
    moves = (action >= NORTH) & (action <= WEST) & (s.using < 0)
    s.cell[:] = layout.step.take(s.cell * 5 + action * moves)
    walk_away(s, layout, action)
    _, denied = request(s, layout, action, utilities, happened)
    promote(s, layout, utilities, happened)
    social = _chat(s, layout, action, rng, happened)
    s.needs[...] -= layout.decay * acted[:, :, None]
    np.maximum(s.needs, 0.0, out=s.needs)
    pay = work(s, layout, happened)
    decay_relations(s, layout)
    fainted = acted & (s.needs[:, :, 0] <= layout.scenario.lifecycle.faint_at)
    evicted = pay.must_leave & ~fainted if pay is not None else np.zeros_like(fainted)
    waiting = s.queued >= 0
    avoid, near = _rivals(s, layout)
    rivalry = strongest(s.rivalry)
    for kind, town, actor, other, _, intensity in happened.parts:
        if kind == "queue_conflict":
            for who, share in ((actor, 1.0), (other, 0.5)):
                cells: Any = (town, who)
                np.add.at(social, cells, -share * layout.scenario.rewards.conflict * intensity)
    facts = TownRewardFacts(
        acted=acted,
        pay=pay,
        social=social,
        waiting=waiting,
        avoid=avoid,
        near=near,
        rivalry=rivalry,
        fainted=fainted,
        evicted=evicted,
    )
    total, parts = reward(s, layout, facts)
    s.last_action[:], s.last_ok[:] = action, ~denied
    _count(s, layout, facts, rivalry, total, happened)
    left = fainted | evicted
    if np.count_nonzero(left):
        release(s, *np.nonzero(left))
        s.present[left] = False
        back_at = s.tick[:, None] + 1 + layout.scenario.lifecycle.respawn_delay
        s.back_at[left] = np.broadcast_to(back_at, left.shape)[left]
        forget(s, left)
    s.age[...] += acted
    s.tick[:] += 1
    return s, TickOutcome(
        acted=acted, reward=total, parts=parts, terminated=left, rivalry=rivalry, avoid=avoid, happened=happened
    )


def spawn_due_agents(layout: Layout, state: State, rng: Randomness) -> State:
    """Return `state` with new agents in the places that are due; the same object if there are none."""
    due = ~state.present & (state.back_at <= state.tick[:, None])
    if not np.count_nonzero(due):
        return state
    state = state.copy()
    settle(state, layout, due, rng)
    return state


def perturb(s: State, layout: Layout, rng: Randomness, happened: Happenings) -> None:
    """Start and end events; a blackout or outage interrupts the uses that need the service."""
    rules = layout.scenario.perturbations
    if not rules.events:
        return
    s.event_left[...] -= s.event >= 0
    over = (s.event >= 0) & (s.event_left <= 0)
    s.event[over] = -1
    for number, event in enumerate(rules.events):
        if event.tick is not None:
            begins = s.tick == event.tick
        else:
            begins = (s.event < 0) & (s.event_next == s.tick) & (s.event_kind == number)
        if not np.count_nonzero(begins):
            continue
        s.event[begins], s.event_left[begins] = number, event.duration
        happened.add(event.kind, np.flatnonzero(begins))
        if event.kind != "price_spike":
            s.counts[begins, COUNT["utility_outage_events"]] += 1.0
            needy = layout.power if event.kind == "blackout" else layout.water
            stopped = begins[:, None] & (s.using >= 0) & needy[layout.kind[np.maximum(s.using, 0)]]
            release(s, *np.nonzero(stopped))
        if event.tick is None:
            plan_events(s, layout, np.flatnonzero(begins), rng)


def _chat(s: State, layout: Layout, action: np.ndarray, rng: Randomness, happened: Happenings) -> np.ndarray:
    """Return the rewards of chats, [B, A]; good ones improve the relationship."""
    nothing = np.zeros(action.shape)
    town, agent = np.nonzero((action == CHAT) & (s.chat_at <= s.tick[:, None]) & (s.using < 0) & s.present)
    if not len(town):
        return nothing
    other, apart = nearest_of(s, layout, town, agent)
    near = apart <= 1
    town, agent, other = town[near], agent[near], other[near]
    if not len(town):
        return nothing
    rules, pays = layout.scenario.rivalry, layout.scenario.rewards
    one, two = town * action.shape[1] + agent, town * action.shape[1] + other
    places = s.tie_with.shape[2]
    known = s.tie_with.reshape(-1, places).take(one, axis=0) == other[:, None]
    trust, familiarity, rivalry = np.einsum("nek,ne->kn", s.ties.reshape(-1, places, 3).take(one, axis=0), known)
    needs = s.needs.reshape(-1, 3)
    mood = needs.take(one, axis=0).min(axis=1) * needs.take(two, axis=0).min(axis=1)
    # Clipped below to 0.05…0.95, so that neither success nor failure is ever certain.
    likes = 0.5 + 0.3 * trust + 0.2 * layout.character[agent, 0] - 0.6 * rivalry + 0.4 * mood
    good = rng.world.random(len(town)) < np.minimum(np.maximum(likes, 0.05), 0.95)
    quality = np.minimum(0.4 + 0.6 * mood, 1.0)
    gain = np.where(good, pays.chat * (1.0 + 3.0 * trust + 2.0 * familiarity) * quality, -0.5 * pays.chat)
    who, what = np.concatenate([one, two]), np.concatenate([gain, 0.5 * gain])
    rewards = np.bincount(who, what, minlength=action.size).reshape(action.shape)
    deltas = (0.05 * quality * good, np.where(good, 0.10 * quality, FAILED_CHAT[1]), FAILED_CHAT[2] * ~good)
    both_ways(s, town, agent, other, deltas)
    s.chat_at[town, agent] = s.tick[town] + rules.chat_cooldown
    for count, amount in zip(_CHATS, (good, ~good, quality * good), strict=True):
        s.counts[:, count] += np.bincount(town, amount, minlength=s.towns)
    happened.add("chat_success", town[good], agent[good], other[good], -1, quality[good])
    happened.add("chat_failure", town[~good], agent[~good], other[~good])
    return rewards


_CHATS = tuple(COUNT[name] for name in ("chat_success_events", "chat_failure_events", "chat_quality_sum"))


def nearest_of(s: State, layout: Layout, town: np.ndarray, agent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest other agent of each (-1 for none) and its distance in tiles without walls, [n] both."""
    cell = s.cell[town]
    x, y = layout.column.take(cell), layout.row.take(cell)
    rows = np.arange(len(town))
    apart = np.abs(x - x[rows, agent][:, None]) + np.abs(y - y[rows, agent][:, None])
    apart = np.where(s.present[town], apart, FAR)
    apart[rows, agent] = FAR
    other = apart.argmin(axis=1)
    far = apart[rows, other]
    return np.where(far < FAR, other, -1), far


def _rivals(s: State, layout: Layout) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of rivals to be avoided, and of those within two tiles, [B, A] both."""
    avoid = (s.rivalry >= layout.scenario.rivalry.avoid_threshold) & (s.tie_with >= 0)
    if not np.count_nonzero(avoid):
        nobody = np.zeros(s.present.shape, np.int64)
        return nobody, nobody
    return avoid.sum(axis=2), (avoid & (tie_distance(s, layout) <= 2)).sum(axis=2)


def _count(
    s: State, layout: Layout, facts: TownRewardFacts, rivalry: np.ndarray, total: np.ndarray, happened: Happenings
) -> None:
    counts, acted = s.counts, facts.acted
    table = np.empty((len(_COUNTED), *acted.shape))
    low = s.needs < layout.wanting
    wanting = (low[:, :, 0] | low[:, :, 1] | low[:, :, 2]) & (s.using < 0) & acted
    table[0], table[1], table[2] = facts.waiting, facts.waiting | wanting, acted
    np.multiply(1.0 - s.needs @ _THIRDS, acted, out=table[3])
    np.multiply(rivalry, acted, out=table[4])
    table[5], table[6] = facts.avoid, total
    counts[:, _COUNTED] += table.sum(axis=2).T
    for kind, who in (("faint", facts.fainted), ("eviction", facts.evicted)):
        if np.count_nonzero(who):
            counts[:, COUNT[f"{kind}_events"]] += who.sum(axis=1)
            happened.add(kind, *np.nonzero(who))


_COUNTED = [
    COUNT[name]
    for name in (
        "waiting_ticks",
        "unserved_ticks",
        "agent_ticks",
        "need_deficit_sum",
        "rivalry_max_sum",
        "rivalry_avoid_sum",
        "return_sum",
    )
]
_THIRDS = np.full(3, 1.0 / 3.0)
