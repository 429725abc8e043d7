"""surefoot.town.sim.rewards."""

import pytest

from surefoot.town.sim.layout import WAIT, WEST
from surefoot.town.sim.rewards import PARTS


def test_the_reward_is_the_sum_of_its_parts(small_town) -> None:
    town = small_town(small_town.WORK)
    for _ in range(6):
        outcome = town.go(WAIT, 4)
        assert outcome.reward == pytest.approx(outcome.parts.sum(axis=2))


def test_the_way_to_work_that_is_left_costs_from_the_hour_one_should_set_out(small_town) -> None:
    town = small_town(small_town.WORK.replace("start: 2", "start: 6") + "rewards: {commute: 0.3, commute_ahead: 5}\n")
    punctuality = [town.go(WAIT, WEST).parts[0, :, PARTS.index("punctuality")] for _ in range(3)]
    # Seven tiles away at first, one of which is within reach; the town is 12 + 3 in size.
    assert punctuality[0].tolist() == [0.0, 0.0]
    assert punctuality[1] == pytest.approx([0.0, -0.3 * 4 / 15])
    assert punctuality[2] == pytest.approx([0.0, -0.3 * 3 / 15])
