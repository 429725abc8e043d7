"""Check that a scenario is consistent: positions, names and shifts. Errors name the line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from surefoot.town.scenarios.scenario import AFFORDANCES, MODES, PERTURBATIONS, PROFILES, VARIANTS, Scenario
from surefoot.town.scenarios.yaml_reader import Lines

MEASURES = (
    "return",
    "waiting",
    "unserved",
    "conflict_intensity",
    "conflicts",
    "punctuality",
    "wages",
    "rivalry_integral",
    "need_deficit",
    "uses",
)


def check_scenario(scenario: Scenario, lines: Lines) -> None:
    """Raise `ScenarioError` for the first inconsistency."""
    _check_choices(scenario, lines)
    _check_positions(scenario, lines)
    _names(scenario, lines)
    _check_shifts(scenario, lines)
    if not scenario.agents:
        raise lines.error("agents", "there are no agents; add at least one (--auto-seed-agents adds two)")


def _check_shifts(scenario: Scenario, lines: Lines) -> None:
    day, areas = scenario.ticks_per_day, _areas(scenario)
    for name, job in scenario.jobs.items():
        if job.start >= day or job.end > day or job.start == job.end:
            raise lines.error(
                f"jobs.{name}",
                f"the shift {name} is from {job.start} to {job.end}; both must be within the day of {day} ticks and "
                "differ (an end before the start is the next day)",
            )
    where = {thing.id: thing.position for thing in scenario.objects}
    for i, resident in enumerate(scenario.agents):
        if resident.job is not None:
            place = scenario.jobs[resident.job].location
            if areas[resident.position] != areas[where[place]]:
                raise lines.error(
                    f"agents.{i}.job",
                    f"{resident.id} cannot reach {place}, the location of its job {resident.job}: walls are between "
                    f"{list(resident.position)} and {list(where[place])}",
                )


def _areas(scenario: Scenario) -> dict[tuple[int, int], int]:
    """Return the number of the area of each floor tile; there is a path between two tiles with the same number."""
    width, height = scenario.grid
    areas: dict[tuple[int, int], int] = {}
    for start in ((x, y) for y in range(height) for x in range(width)):
        edge, number = [start], len(areas)
        while edge:
            x, y = edge.pop()
            inside = 0 <= x < width and 0 <= y < height
            if inside and (x, y) not in areas and not (scenario.walls and scenario.walls[y][x] == "#"):
                areas[x, y] = number
                edge += [(x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)]
    return areas


def _check_choices(scenario: Scenario, lines: Lines) -> None:
    _one_of(lines, "observations", scenario.observations, VARIANTS)
    _one_of(lines, "training.source", scenario.training.source, MODES)
    if scenario.window % 2 == 0:
        raise lines.error("window", f"window is {scenario.window}; it must be odd, so that the agent is in its centre")
    for i, event in enumerate(scenario.perturbations.events):
        _one_of(lines, f"perturbations.events.{i}.kind", event.kind, PERTURBATIONS)
    for i, resident in enumerate(scenario.agents):
        _one_of(lines, f"agents.{i}.profile", resident.profile, PROFILES)
        for j, step in enumerate(resident.schedule):
            where = f"agents.{i}.schedule.{j}"
            if step.startswith("to:"):
                _one_of(lines, where, step[3:], [thing.id for thing in scenario.objects])
            else:
                _one_of(lines, where, step, scenario.actions)
    for i, measure in enumerate(scenario.measures):
        _one_of(lines, f"measures.{i}", measure, MEASURES)


def _check_positions(scenario: Scenario, lines: Lines) -> None:
    width, height = scenario.grid
    if scenario.walls:
        if len(scenario.walls) != height:
            raise lines.error("walls", f"walls has {len(scenario.walls)} rows but the grid is {height} high")
        for y, row in enumerate(scenario.walls):
            if len(row) != width:
                raise lines.error(
                    f"walls.{y}", f"row {y} of walls has {len(row)} characters but the grid is {width} wide"
                )
    occupied: dict[tuple[int, int], str] = {}
    for kind in ("objects", "agents"):
        for i, one in enumerate(getattr(scenario, kind)):
            x, y = one.position
            where = f"{kind}.{i}.position"
            if not (0 <= x < width and 0 <= y < height):
                raise lines.error(where, f"{one.id} is at [{x}, {y}], outside the grid of {width} by {height}")
            if scenario.walls and scenario.walls[y][x] == "#":
                raise lines.error(where, f"{one.id} is at [{x}, {y}], which is a wall")
            if kind == "objects":
                if (x, y) in occupied:
                    raise lines.error(where, f"{one.id} is at [{x}, {y}], the same place as {occupied[x, y]}")
                occupied[x, y] = one.id


def _names(scenario: Scenario, lines: Lines) -> None:
    for kind in ("objects", "agents"):
        ids: set[str] = set()
        for i, one in enumerate(getattr(scenario, kind)):
            if one.id in ids:
                raise lines.error(f"{kind}.{i}.id", f"the id {one.id!r} appears twice in {kind}; ids must be unique")
            ids.add(one.id)
    known = {*AFFORDANCES, *scenario.affordances}
    for i, thing in enumerate(scenario.objects):
        _one_of(lines, f"objects.{i}.type", thing.type, sorted(known))
    types = set(scenario.types)
    for kind in scenario.affordances:
        if kind not in types:
            close = difflib.get_close_matches(kind, types, n=1)
            advice = f"did you mean {close[0]!r}?" if close else "add an object of that type, or remove this entry"
            raise lines.error(f"affordances.{kind}", f"affordances has {kind!r}, but no object has that type; {advice}")
    things = [thing.id for thing in scenario.objects]
    for name, job in scenario.jobs.items():
        _one_of(lines, f"jobs.{name}.location", job.location, things)
    for i, resident in enumerate(scenario.agents):
        if resident.job is not None:
            _one_of(lines, f"agents.{i}.job", resident.job, scenario.jobs)
    names = [resident.id for resident in scenario.agents]
    for pair in scenario.rivalry.begin:
        one, dash, other = pair.partition("-")
        where = f"rivalry.begin.{pair}"
        if not dash or one == other:
            raise lines.error(where, f"{pair!r} is not a pair of agents; write it as finn-gina")
        _one_of(lines, where, one, names)
        _one_of(lines, where, other, names)


def _one_of(lines: Lines, path: str, value: str, known: Iterable[str]) -> None:
    known = list(known)
    if value in known:
        return
    close = difflib.get_close_matches(value, known, n=1)
    advice = (
        f"did you mean {close[0]!r}?"
        if close
        else f"it must be one of {', '.join(known)}"
        if known
        else "there are none"
    )
    raise lines.error(path, f"{path} is {value!r}; {advice}")
