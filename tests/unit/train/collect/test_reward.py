"""The reward scaler against a slow definition, the outlier watch against plain sense."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.train.collect.reward import OutlierWatch, RewardScaler


def slow(rollouts, gamma: float, clip: float) -> list[np.ndarray]:
    """Every discounted return ever seen in one list, its variance taken anew each time."""
    streams = rollouts[0][0].shape[1]
    running, seen, out = [0.0] * streams, [], []
    for reward, ended, valid in rollouts:
        for t in range(len(reward)):
            for n in range(streams):
                if not valid[t, n]:
                    running[n] = 0.0
                    continue
                running[n] = running[n] * gamma + reward[t, n]
                seen.append(running[n])
                if ended[t, n]:
                    running[n] = 0.0
        out.append(np.clip(reward / np.sqrt(np.var(seen) + 1e-8), -clip, clip))
    return out


def a_rollout(seed: int, T: int = 20, N: int = 3):
    rng = np.random.default_rng(seed)
    valid = rng.random((T, N)) > 0.1
    return np.where(valid, rng.normal(2.0, 5.0, (T, N)), 0.0), rng.random((T, N)) < 0.15, valid


@pytest.mark.parametrize(("gamma", "clip"), [(0.99, 10.0), (0.5, 0.3), (0.0, 10.0)])
def test_rewards_are_divided_by_the_deviation_of_all_returns_so_far(gamma, clip):
    rollouts, scaler = [a_rollout(s) for s in range(4)], RewardScaler(3, gamma=gamma, clip=clip)
    ours = [scaler.scale(*rollout) for rollout in rollouts]
    for mine, theirs in zip(ours, slow(rollouts, gamma, clip), strict=True):
        assert np.allclose(mine, theirs, rtol=1e-9)


def test_no_mean_is_subtracted():
    scaler = RewardScaler(1, gamma=0.9, clip=10.0)
    reward = np.array([[1.0], [2.0], [4.0]])
    scaled = scaler.scale(reward, np.zeros((3, 1), bool), np.ones((3, 1), bool))
    assert np.allclose(scaled / scaled[0], reward)


def test_a_return_starts_again_after_either_end():
    scaler = RewardScaler(2, gamma=0.5, clip=10.0)
    ended = np.array([[True, False], [False, False]])
    scaler.scale(np.ones((2, 2)), ended, np.ones((2, 2), bool))
    assert scaler.running.tolist() == [1.0, 1.5]


def test_returns_run_on_from_one_rollout_to_the_next():
    scaler, no, yes = RewardScaler(1, gamma=0.5, clip=10.0), np.zeros((1, 1), bool), np.ones((1, 1), bool)
    for expected in (1.0, 1.5, 1.75):
        scaler.scale(np.ones((1, 1)), no, yes)
        assert scaler.running[0] == expected


def test_rewards_that_are_all_zero_stay_zero():
    scaler = RewardScaler(2, gamma=0.9, clip=10.0)
    assert (scaler.scale(np.zeros((5, 2)), np.zeros((5, 2), bool), np.ones((5, 2), bool)) == 0).all()


def test_a_rollout_in_which_nothing_counts_moves_nothing():
    scaler = RewardScaler(2, gamma=0.9, clip=10.0)
    scaler.scale(np.zeros((5, 2)), np.zeros((5, 2), bool), np.zeros((5, 2), bool))
    assert (scaler.mean, scaler.var, scaler.count) == (0.0, 1.0, 0.0)


def test_a_scaler_goes_on_from_its_state():
    one, two = RewardScaler(3, gamma=0.9, clip=10.0), RewardScaler(3, gamma=0.9, clip=10.0)
    one.scale(*a_rollout(0))
    two.set_state(one.state())
    assert np.array_equal(one.scale(*a_rollout(1)), two.scale(*a_rollout(1)))


def watched(*rollouts: np.ndarray) -> list[int]:
    watch = OutlierWatch()
    return [watch.count_in(np.asarray(r, float)) for r in rollouts]


@pytest.mark.parametrize("huge", [1e9, 1e12, -1e30])
def test_a_reward_far_from_all_before_it_is_counted_again_and_again(huge):
    usual = np.random.default_rng(0).normal(size=200)
    assert watched(usual, [huge], usual, [huge, 0.0]) == [0, 1, 0, 1]


def test_the_first_hundred_only_set_the_scale():
    assert watched([1e9] + [0.0] * 50) == [0]


def test_twenty_deviations_are_the_limit():
    usual = np.array([1.0, -1.0] * 100)  # mean 0, deviation 1
    assert watched(usual, [19.9, -19.9, 20.1, -20.1])[1] == 2


def test_a_reward_that_never_varied_may_not_stand_out_by_rounding():
    assert watched([0.1] * 500, [0.1 + 1e-10])[1] == 0


def test_a_goal_that_is_reached_in_every_tenth_step_is_no_outlier():
    # A world that pays only at the goal: nothing at first, then a 1 in ten. That is the task, not a mistake.
    rollouts = [np.zeros(200)] + [np.array([0.0] * 9 + [1.0] * 1).repeat(20)] * 20
    assert watched(*rollouts)[-1] == 0
