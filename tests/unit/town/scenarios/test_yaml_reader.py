"""surefoot.town.scenarios.yaml_reader."""

import pytest

from surefoot.errors import ScenarioError
from surefoot.town.scenarios.scenario import load_scenario, parse_scenario, scenario_schema

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


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("ticks: 10", "tiks: 10", 2, "unknown key 'tiks'; did you mean 'ticks'"),
        ("ticks: 10", "ticks: ten", 2, "a whole number"),
        ("[1, 2]}", "[1, 2], wallet: .nan}", 7, "must be a number"),
        ("ticks: 10", "ticks: 0", 2, "between 1 and"),
        ("[2, 2]", "[2, 9]", 5, "shower_1 is at [2, 9], outside the grid of 5 by 5"),
        ("type: shower", "type: shwer", 5, "did you mean 'shower'"),
        ("id: ben", "id: anna", 8, "appears twice"),
        ("[3, 2]}", "[3, 2], job: cook}", 8, "agents.1.job is 'cook'"),
        ("[3, 2]}", "[3, 2], need: {}}", 8, "did you mean 'needs'"),
        ("[1, 2]}", "[1]}", 7, "must have 2 entries"),
        ("grid: [5, 5]", "grid: [5, 5]\nqueue: {cooldwn: 3}", 4, "unknown key 'cooldwn' in queue"),
        ("grid: [5, 5]", "grid: [5, 5]\ngrid: [6, 6]", 4, "appears twice"),
        ("grid: [5, 5]", "grid: [5, 5]\nobservations: hybrd", 4, "did you mean 'hybrid'"),
        ("grid: [5, 5]", "grid: [5, 5", 4, "invalid YAML"),
        ("grid: [5, 5]", "grid: [5, 5]\nwalls: ['#']", 4, "5 high"),
        ("grid: [5, 5]", "grid: [5, 5]\njobs: {a: {start: 9, end: 9, location: shower_1}}", 4, "9 to 9; both must"),
    ],
)
def test_a_mistake_is_named_with_its_line(old: str, new: str, line: int, says: str) -> None:
    with pytest.raises(ScenarioError) as found:
        parse_scenario(SMALL.replace(old, new, 1), "town.yaml")
    assert str(found.value).startswith(f"town.yaml:{line}:"), str(found.value)
    assert says in str(found.value)


def test_the_schema_knows_every_key_of_the_shipped_files() -> None:
    known = scenario_schema()["properties"]
    assert set(load_scenario("market_town").to_json()) == set(known)
    assert known["queue"]["properties"]["cooldown"]["minimum"] == 0
