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
