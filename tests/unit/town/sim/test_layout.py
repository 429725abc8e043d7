"""Tables of a layout, with distances counted on a small grid."""

import numpy as np

from surefoot.town.scenarios.scenario import parse_scenario
from surefoot.town.sim.layout import EAST, FAR, NORTH, WAIT, WEST, first_of_each, make_layout

TOWN = """
name: wall
ticks: 10
grid: [4, 3]
walls: ["..#.", "..#.", "...."]
objects: [{id: bed_1, type: bed, position: [3, 0]}, {id: bed_2, type: bed, position: [0, 0]}]
agents: [{id: anna, position: [1, 0]}]
"""


def test_paths_go_around_walls():
    layout = make_layout(parse_scenario(TOWN))
    right, left = layout.distance[0].reshape(3, 4), layout.distance[1].reshape(3, 4)
    assert right[0, 3] == 0
    assert right[0, 1] == 6  # down, down, east, east, up, up
    assert left[0, 1] == 1
    assert (layout.distance[2] == FAR).all()
    assert layout.toward[0].reshape(3, 4)[2, 3] == NORTH
    assert layout.toward[1].reshape(3, 4)[0, 1] == WEST
    assert layout.toward[1].reshape(3, 4)[0, 0] == WAIT


def test_a_step_into_a_wall_or_over_the_edge_stays():
    step = make_layout(parse_scenario(TOWN)).step
    assert step[1, EAST] == 1
    assert step[0, NORTH] == 0
    assert step[0, EAST] == 1


def test_the_nearest_object_and_reach_follow_the_distances():
    layout = make_layout(parse_scenario(TOWN))
    assert layout.nearest[0].reshape(3, 4)[1].tolist()[:2] == [1, 1]
    assert layout.nearest[0].reshape(3, 4)[2, 3] == 0
    assert layout.reach[0].reshape(3, 4)[0].tolist()[:2] == [1, 1]
    assert layout.reach[0].reshape(3, 4)[2, 1] == -1


def test_first_of_each_marks_changes():
    assert first_of_each(np.array([2, 2, 3, 5, 5])).tolist() == [True, False, True, True, False]
