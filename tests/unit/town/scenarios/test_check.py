"""surefoot.town.scenarios.check."""

import pytest

from surefoot.errors import ScenarioError
from surefoot.town.scenarios.scenario import parse_scenario

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


def test_a_wall_under_somebody_is_an_error() -> None:
    walls = "walls: ['.....', '.....', '.#...', '.....', '.....']"
    with pytest.raises(ScenarioError, match=r"town.yaml:8: anna is at \[1, 2\], which is a wall"):
        parse_scenario(SMALL.replace("grid: [5, 5]", f"grid: [5, 5]\n{walls}"), "town.yaml")


JOB = """\
jobs:
  wash: {start: 8, end: 3, location: shower_1}
ticks_per_day: 10
"""
WALL = "walls: ['.....', '####.', '...#.', '####.', '.....']\n"


def test_a_workplace_behind_walls_is_an_error() -> None:
    text = SMALL.replace("[1, 2]}", "[1, 2], job: wash}").replace("[3, 2]", "[0, 2]")
    assert parse_scenario(text + JOB + WALL).jobs["wash"].end == 3
    outside = text.replace("[1, 2], job", "[4, 0], job")
    message = r"town.yaml:7: anna cannot reach shower_1, the location of its job wash: walls are between \[4, 0\] and"
    with pytest.raises(ScenarioError, match=message):
        parse_scenario(outside + JOB + WALL, "town.yaml")


@pytest.mark.parametrize(("start", "end"), [(3, 3), (10, 2), (2, 11)])
def test_a_shift_outside_of_the_day_is_an_error(start: int, end: int) -> None:
    with pytest.raises(
        ScenarioError, match=f"town.yaml:10: the shift wash is from {start} to {end}; both must be within"
    ):
        parse_scenario(SMALL + JOB.replace("start: 8, end: 3", f"start: {start}, end: {end}"), "town.yaml")


@pytest.mark.parametrize(
    ("kind", "advice"),
    [("showr", "did you mean 'shower'"), ("boat", "add an object of that type, or remove this entry")],
)
def test_an_affordance_of_no_object_is_an_error(kind: str, advice: str) -> None:
    with pytest.raises(ScenarioError, match=f"town.yaml:10: affordances has '{kind}', but no object .*{advice}"):
        parse_scenario(SMALL + f"affordances:\n  {kind}: {{duration: 3}}\n", "town.yaml")
