"""Tables of a scenario that never change: floor, paths to objects, shifts, effects. Computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from surefoot.town.scenarios.scenario import NEEDS, PROFILES, Job, Scenario

WAIT, NORTH, EAST, SOUTH, WEST, LEAVE, CHAT, USE = range(8)
"""Actions; USE + k uses an object of the k-th type."""
STEPS = ((0, -1), (1, 0), (0, 1), (-1, 0))
"""(right, down) of north, east, south, west."""
# Distance of what cannot be reached; beyond any town, and it fits into int16.
FAR = 30_000
WAY = ("dx", "dy", "dist", "north", "east", "south", "west")
"""Features of the path to an object."""
REACH = 1
"""Steps from which an object can be used and a workplace counts as reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Tables of one scenario. A cell is y · width + x."""

    scenario: Scenario
    width: int
    height: int
    floor: np.ndarray
    """[cells] bool: not a wall."""
    step: np.ndarray
    """[cells, 5] int32: the cell after waiting, or a step north, east, south, west; the same cell at a wall."""
    distance: np.ndarray
    """[objects + 1, cells] int16: steps to each object; the last row is FAR everywhere (no object)."""
    toward: np.ndarray
    """[objects + 1, cells] int8: the first action of the path to each object; WAIT at it."""
    way: np.ndarray
    """[objects + 1, cells, 7] float32: WAY to each object."""
    kind: np.ndarray
    """[objects] int16: type of each object."""
    nearest: np.ndarray
    """[types, cells] int16: the nearest object of a type; ties go to the first."""
    nearest_row: np.ndarray
    """[cells, types] int64: the same, cell first."""
    column: np.ndarray
    """[cells] int16: x of a cell; likewise `row`, its y."""
    row: np.ndarray
    clock: np.ndarray
    """[ticks of a day, 2] float32: sine and cosine of the hour."""
    reach: np.ndarray
    """[types, cells] int16: the object of a type that can be used from a cell, or -1."""
    reach_row: np.ndarray
    """[cells, types] int16: the same, cell first."""
    way_to_types: np.ndarray
    """[cells, types · 7] float32: WAY to the nearest object of every type."""
    object_cell: np.ndarray
    """[objects] int32."""
    duration: np.ndarray
    """[types] int32."""
    effect: np.ndarray
    """[types, 3]: added to the needs by a use."""
    cost: np.ndarray
    """[types]."""
    makes: np.ndarray
    """[types] int32: meals added to the stock."""
    takes: np.ndarray
    """[types] bool: takes a meal from the stock."""
    is_meal: np.ndarray
    """[types] bool."""
    power: np.ndarray
    """[types] bool: needs power; likewise `water`."""
    water: np.ndarray
    first_cell: np.ndarray
    """[agents] int32: start cell."""
    first_needs: np.ndarray
    """[agents, 3]."""
    first_wallet: np.ndarray
    """[agents]."""
    job_object: np.ndarray
    """[agents] int16: workplace; the number of objects (no object) without a job."""
    has_job: np.ndarray
    """[agents] bool."""
    shift_elapsed: np.ndarray
    """[ticks of a day, agents] int32: ticks since the start of the agent's shift; -1 outside of it."""
    shift_left: np.ndarray
    """[ticks of a day, agents] int32: ticks to the end of the shift; 0 outside of it."""
    shift_ahead: np.ndarray
    """[ticks of a day, agents] int32: ticks to the next start of the shift; FAR without a job."""
    wage: np.ndarray
    """[agents]; likewise `late_fee`."""
    late_fee: np.ndarray
    job_number: np.ndarray
    """[agents] int16: job number, -1 for none; agents with the same job are coworkers."""
    character: np.ndarray
    """[agents, 3] float32: extroversion, forgiveness, ambition."""
    factor: np.ndarray
    """[agents, 3]: factors of the survival, work and social rewards."""
    decay: np.ndarray
    """[3]: loss of the needs per tick."""
    need_cost: np.ndarray
    """[3]: penalty of a squared deficit."""
    wanting: np.ndarray
    """[3]: the script's threshold of a need, -1 if no object serves it; a need below it is unserved."""
    somebody_works: bool
    somebody_pays: bool
    """Some object costs money."""
    somebody_cooks: bool
    """Some type puts meals into the stock."""
    somebody_eats: bool
    """Some type takes meals from the stock."""

    @property
    def agents(self) -> int:
        return len(self.first_cell)

    @property
    def objects(self) -> int:
        return len(self.kind)

    @property
    def types(self) -> int:
        return len(self.duration)

    @property
    def actions(self) -> int:
        return USE + self.types


@lru_cache(maxsize=64)
def first_agent(towns: int, agents: int) -> np.ndarray:
    """Return where each town's row starts in a flat [B, A], [B, 1]. `take` with it is several times faster than two indices."""
    return np.arange(towns)[:, None] * agents


@lru_cache(maxsize=64)
def first_place(towns: int, agents: int, places: int) -> np.ndarray:
    """Return where each agent's row starts in a flat [B, A, places], [B, A]."""
    return np.arange(towns * agents).reshape(towns, agents) * places


def first_of_each(ordered: np.ndarray) -> np.ndarray:
    """Return where a sorted, non-empty array differs from its previous entry, [n] bool; True at the first."""
    first = np.empty(len(ordered), np.bool_)
    first[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return first


def make_layout(scenario: Scenario) -> Layout:
    width, height = scenario.grid
    rows = scenario.walls or ["." * width] * height
    floor = np.array([[sign != "#" for sign in row] for row in rows]).ravel()
    step = _steps(floor, width, height)
    objects, types = scenario.objects, scenario.types
    object_cell = np.array([y * width + x for x, y in (o.position for o in objects)], np.int32)
    kind = np.array([types.index(o.type) for o in objects], np.int16)
    distance = _distances(step, floor, object_cell)
    toward = _toward(step, distance)
    way = _ways(distance, toward, object_cell, width, height)
    nearest = np.full((len(types), len(floor)), len(objects), np.int16)
    for k in range(len(types)):
        same = np.flatnonzero(kind == k)
        nearest[k] = same[distance[same].argmin(axis=0)]
    close = np.take_along_axis(distance, nearest.astype(np.int64), axis=0) <= REACH
    reach = np.where(close, nearest, -1).astype(np.int16)
    everywhere = np.arange(len(floor))
    angle = np.arange(scenario.ticks_per_day) * (2.0 * np.pi / scenario.ticks_per_day)
    to_types = np.concatenate(
        [way[nearest[k], everywhere] for k in range(len(types))] or [np.zeros((len(floor), 0), np.float32)], axis=1
    )
    what = [scenario.affordance(name) for name in types]
    jobs = list(scenario.jobs)
    job_of = [scenario.jobs[a.job] if a.job is not None else None for a in scenario.agents]
    ids = [o.id for o in objects]
    profiles = [PROFILES[a.profile] for a in scenario.agents]
    decay, cost = scenario.decay, scenario.rewards
    elapsed, left, ahead = _shifts(job_of, scenario.ticks_per_day)
    return Layout(
        scenario=scenario,
        width=width,
        height=height,
        floor=floor,
        step=step,
        distance=distance,
        toward=toward,
        way=way,
        kind=kind,
        nearest=nearest,
        nearest_row=np.ascontiguousarray(nearest.T, np.int64),
        column=(everywhere % width).astype(np.int16),
        row=(everywhere // width).astype(np.int16),
        clock=np.stack([np.sin(angle), np.cos(angle)], axis=1).astype(np.float32),
        reach=reach,
        reach_row=np.ascontiguousarray(reach.T),
        way_to_types=to_types,
        object_cell=object_cell,
        duration=np.array([a.duration for a in what], np.int32),
        effect=np.array([[getattr(a, n) for n in NEEDS] for a in what], np.float64).reshape(len(types), 3),
        cost=np.array([a.cost for a in what], np.float64),
        makes=np.array([a.makes_meals for a in what], np.int32),
        takes=np.array([a.takes_meal for a in what], np.bool_),
        is_meal=np.array([a.meal for a in what], np.bool_),
        power=np.array([a.power for a in what], np.bool_),
        water=np.array([a.water for a in what], np.bool_),
        first_cell=np.array([y * width + x for x, y in (a.position for a in scenario.agents)], np.int32),
        first_needs=np.array([[getattr(a.needs, n) for n in NEEDS] for a in scenario.agents], np.float64),
        first_wallet=np.array([a.wallet for a in scenario.agents], np.float64),
        job_object=np.array([len(ids) if j is None else ids.index(j.location) for j in job_of], np.int16),
        has_job=np.array([j is not None for j in job_of], np.bool_),
        shift_elapsed=elapsed,
        shift_left=left,
        shift_ahead=ahead,
        wage=np.array([0.0 if j is None else j.wage for j in job_of]),
        late_fee=np.array([0.0 if j is None else j.lateness_penalty for j in job_of]),
        job_number=np.array([-1 if a.job is None else jobs.index(a.job) for a in scenario.agents], np.int16),
        character=np.array(
            [[p.get(n, 0.0) for n in ("extroversion", "forgiveness", "ambition")] for p in profiles], np.float32
        ),
        factor=np.array([[p.get(n, 1.0) for n in ("survival", "work", "social")] for p in profiles]),
        decay=np.array([getattr(decay, n) for n in NEEDS]),
        need_cost=np.array([getattr(cost, n) for n in NEEDS]),
        wanting=np.array(
            [
                getattr(scenario.behavior, f"{n}_threshold") if any(getattr(a, n) > 0 for a in what) else -1.0
                for n in NEEDS
            ]
        ),
        somebody_works=any(j is not None for j in job_of),
        somebody_pays=any(a.cost > 0 for a in what),
        somebody_cooks=any(a.makes_meals for a in what),
        somebody_eats=any(a.takes_meal for a in what),
    )


def _shifts(jobs: Sequence[Job | None], day: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return `shift_elapsed`, `shift_left` and `shift_ahead`; a shift that ends before it starts goes over midnight."""
    elapsed, left, ahead = (np.full((day, len(jobs)), x, np.int32) for x in (-1, 0, FAR))
    clock = np.arange(day)
    for agent, job in enumerate(jobs):
        if job is not None:
            length = (job.end - job.start) % day or day
            since = (clock - job.start) % day
            elapsed[:, agent] = np.where(since < length, since, -1)
            left[:, agent] = np.maximum(length - since, 0)
            ahead[:, agent] = (job.start - clock) % day
    return elapsed, left, ahead


def _steps(floor: np.ndarray, width: int, height: int) -> np.ndarray:
    cells = np.arange(width * height, dtype=np.int32)
    y, x = np.divmod(cells, width)
    table = [cells]
    for right, down in STEPS:
        nx, ny = x + right, y + down
        inside = (nx >= 0) & (nx < width) & (ny >= 0) & (ny < height)
        target = np.where(inside, ny * width + nx, cells)
        table.append(np.where(floor[target], target, cells))
    return np.stack(table, axis=1).astype(np.int32)


def _distances(step: np.ndarray, floor: np.ndarray, goals: np.ndarray) -> np.ndarray:
    """Return the steps to each goal by breadth-first search, [goals + 1, cells]; FAR where there is no path."""
    table = np.full((len(goals) + 1, len(floor)), FAR, np.int16)
    for row, goal in zip(table, goals, strict=False):
        row[goal] = 0
        edge, distance = np.array([goal]), 0
        while len(edge):
            distance += 1
            near = np.unique(step[edge])
            edge = near[row[near] == FAR]
            row[edge] = distance
    return table


def _toward(step: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """Return the first of the four moves that comes nearer, [goals, cells]; WAIT where none does."""
    after = distance[:, step[:, 1:]].astype(np.int32)
    best = after.min(axis=2)
    return np.where(best < distance, after.argmin(axis=2) + 1, WAIT).astype(np.int8)


def _ways(distance: np.ndarray, toward: np.ndarray, goals: np.ndarray, width: int, height: int) -> np.ndarray:
    cells = distance.shape[1]
    y, x = np.divmod(np.arange(cells), width)
    table = np.zeros((len(distance), cells, len(WAY)), np.float32)
    for row, goal in enumerate(goals):
        gy, gx = divmod(int(goal), width)
        table[row, :, 0], table[row, :, 1] = (gx - x) / width, (gy - y) / height
        table[row, :, 2] = np.minimum(distance[row], width + height) / (width + height)
        table[row, :, 3:] = toward[row][:, None] == np.arange(1, 5)
    return table
