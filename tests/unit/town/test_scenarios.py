"""Scenario files: what is wrong with one is said with its line."""

import json

import pytest

from surefoot.errors import ScenarioError
from surefoot.town.scenarios.scenario import Scenario, load_scenario, parse_scenario, scenario_schema, shipped

SMALL = """\
name: small
ticks: 10
grid: [5, 5]
objects:
  - {id: shower_1, type: shower, position: [2, 2]}
agents:
  - {id: anna, position: [1, 2]}
  - {id: ben, position: [3, 2]}
"""


def test_six_scenarios_come_along_and_the_large_one_is_large() -> None:
    assert set(shipped()) >= {
        "queue_conflict",
        "employment_punctuality",
        "rivalry_decay",
        "observation_baseline",
        "kitchen_breakfast",
        "market_town",
    }
    large = load_scenario("market_town")
    assert len(large.agents) >= 10
    assert {"bed", "grocer", "cafe", "desk", "bench"} <= set(large.types)


@pytest.mark.parametrize("name", ["queue_conflict", "market_town"])
def test_a_scenario_survives_json(name: str) -> None:
    scenario = load_scenario(name)
    assert Scenario.from_json(json.loads(json.dumps(scenario.to_json()))) == scenario


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("ticks: 10", "tiks: 10", 2, "unknown key 'tiks'; did you mean 'ticks'"),
        ("ticks: 10", "ticks: ten", 2, "a whole number"),
        ("[1, 2]}", "[1, 2], wallet: .nan}", 7, "must be a number"),
        ("ticks: 10", "ticks: 0", 2, "between 1 and"),
        ("[2, 2]", "[2, 9]", 5, "shower_1 is at [2, 9], outside the grid of 5 by 5"),
        ("type: shower", "type: shwer", 5, "did you mean 'shower'"),
        ("id: ben", "id: anna", 8, "given twice"),
        ("[3, 2]}", "[3, 2], job: cook}", 8, "agents.1.job is 'cook'"),
        ("[3, 2]}", "[3, 2], need: {}}", 8, "did you mean 'needs'"),
        ("[1, 2]}", "[1]}", 7, "must have 2 entries"),
        ("grid: [5, 5]", "grid: [5, 5]\nqueue: {cooldwn: 3}", 4, "unknown key 'cooldwn' in queue"),
        ("grid: [5, 5]", "grid: [5, 5]\ngrid: [6, 6]", 4, "given twice"),
        ("grid: [5, 5]", "grid: [5, 5]\nobservations: hybrd", 4, "did you mean 'hybrid'"),
        ("grid: [5, 5]", "grid: [5, 5", 4, "no YAML"),
        ("grid: [5, 5]", "grid: [5, 5]\nwalls: ['#']", 4, "5 high"),
        ("grid: [5, 5]", "grid: [5, 5]\njobs: {a: {start: 9, end: 3, location: shower_1}}", 4, "begin before it ends"),
    ],
)
def test_a_mistake_is_named_with_its_line(old: str, new: str, line: int, says: str) -> None:
    with pytest.raises(ScenarioError) as found:
        parse_scenario(SMALL.replace(old, new, 1), "town.yaml")
    assert str(found.value).startswith(f"town.yaml:{line}:"), str(found.value)
    assert says in str(found.value)


def test_a_wall_under_somebody_is_an_error() -> None:
    walls = "walls: ['.....', '.....', '.#...', '.....', '.....']"
    with pytest.raises(ScenarioError, match=r"town.yaml:8: anna is at \[1, 2\], which is a wall"):
        parse_scenario(SMALL.replace("grid: [5, 5]", f"grid: [5, 5]\n{walls}"), "town.yaml")


def test_an_empty_town_is_refused_unless_agents_are_seeded(tmp_path) -> None:
    file = tmp_path / "empty.yaml"
    file.write_text("name: empty\nticks: 5\n")
    with pytest.raises(ScenarioError, match="--auto-seed-agents"):
        load_scenario(file)
    seeded = load_scenario(file, auto_seed_agents=True)
    assert [resident.id for resident in seeded.agents] == ["alice", "bob"]


def test_an_unknown_scenario_lists_the_known_ones() -> None:
    with pytest.raises(ScenarioError, match="queue_conflict"):
        load_scenario("queue_conflikt")


def test_the_schema_knows_every_key_of_the_shipped_files() -> None:
    known = scenario_schema()["properties"]
    assert set(load_scenario("market_town").to_json()) == set(known)
    assert known["queue"]["properties"]["cooldown"]["minimum"] == 0
