"""A rollout written by the kernel: what lands where, what ends an episode, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from surefoot.native import kernel

STEPS, STREAMS = 5, 3
WRITTEN, ENDED, STRANGE = kernel.RECORDED, kernel.EPISODE_ENDED, kernel.NON_FINITE


@dataclass
class Rollout:
    """The arrays of a rollout and the kernel's handle of it."""

    net: object
    steps: int = STEPS
    streams: int = STREAMS
    masked: bool = False

    def __post_init__(self):
        net, shape = self.net, (self.steps, self.streams)
        row, dtype = (net.width,), net.dtype
        self.obs = np.full((*shape, net.inputs), -9, np.float32)
        self.mask = np.zeros((*shape, net.options), bool) if self.masked else None
        self.action, self.env_action = np.full((*shape, *row), -9, dtype), np.full((*shape, *row), -9, dtype)
        self.log_prob, self.value, self.next_value = (np.full(shape, -9, np.float32) for _ in range(3))
        self.reward = np.full(shape, -9.0)
        self.terminated, self.truncated, self.start, self.valid = (np.zeros(shape, bool) for _ in range(4))
        self.returns, self.lengths = np.zeros(self.streams), np.zeros(self.streams, np.int64)
        self.handle = kernel.rollout_new(
            net.handle,
            steps=self.steps,
            streams=self.streams,
            obs=self.obs,
            mask=self.mask,
            action=self.action,
            env_action=self.env_action,
            log_prob=self.log_prob,
            value=self.value,
            next_value=self.next_value,
            reward=self.reward,
            terminated=self.terminated,
            truncated=self.truncated,
            start=self.start,
            valid=self.valid,
            carry=None,
            critic_carry=None,
        )

    def collect(self, rng, world, obs, start, ended):
        return kernel.rollout_collect(
            self.net.handle,
            self.handle,
            rng,
            world,
            deterministic=False,
            obs=obs,
            start=start,
            returns=self.returns,
            lengths=self.lengths,
            ended=ended,
        )

    def act(self, t, obs, rng, mask=None):
        kernel.rollout_act(self.net.handle, self.handle, rng, t, obs, mask)

    def note(self, t, *, obs=None, reward=None, terminated=(), truncated=(), valid=None):
        flags = [np.isin(np.arange(self.streams), which) for which in (terminated, truncated)]
        reward = np.ones(self.streams) if reward is None else np.asarray(reward, np.float64)
        valid = np.ones(self.streams, bool) if valid is None else valid
        return kernel.rollout_record(self.handle, t, obs, reward, *flags, valid, self.returns, self.lengths)

    def finish(self, obs):
        kernel.rollout_finish(self.net.handle, self.handle, obs)


def observe(net, n=STREAMS, seed=0):
    return np.random.default_rng(seed).normal(size=(n, net.inputs)).astype(np.float32)


@pytest.mark.parametrize(
    "head",
    [{"sizes": (4, 2)}, {"head": "gaussian", "sizes": (3,)}, {"head": "beta", "sizes": (4, 2), "numbers": 3}],
    ids=str,
)
def test_acting_in_a_rollout_is_acting_written_down(isa, net_of, new_rng, head):
    net = net_of(isa=isa, **head)
    roll, ours, theirs = Rollout(net), new_rng(1), new_rng(1)
    values = []
    for t in range(STEPS):
        obs = observe(net, seed=t)
        roll.act(t, obs, ours)
        *expected, value = net.act(obs, theirs)
        values.append(value)
        for found, wanted in zip((roll.action, roll.env_action, roll.log_prob), expected, strict=True):
            np.testing.assert_array_equal(found[t], wanted)
        np.testing.assert_array_equal(roll.obs[t], obs)
    np.testing.assert_array_equal(ours, theirs)
    roll.finish(observe(net))
    np.testing.assert_array_equal(roll.value, np.stack(values))  # many rows at once, and the digits of a few


def test_a_mask_is_written_down_and_obeyed(net_of, rng):
    net = net_of(sizes=(4,))
    roll = Rollout(net, masked=True)
    mask = np.zeros((STREAMS, 4), bool)
    mask[:, 2] = True
    roll.act(1, observe(net), rng, mask)
    assert roll.action[1, :, 0].tolist() == [2] * STREAMS
    np.testing.assert_array_equal(roll.mask[1], mask)
    assert not roll.mask[0].any()


def test_a_step_is_noted_in_its_row_and_the_sums_go_on(net_of):
    roll = Rollout(net_of())
    assert roll.note(0, reward=[1, 2, 3]) == WRITTEN
    assert roll.note(1, reward=[10, 20, 30]) == WRITTEN
    assert roll.reward[:3].tolist() == [[1, 2, 3], [10, 20, 30], [-9, -9, -9]]
    assert roll.valid.sum(axis=1).tolist() == [3, 3, 0, 0, 0]
    assert roll.returns.tolist() == [11, 22, 33]
    assert roll.lengths.tolist() == [2, 2, 2]


def test_ends_are_told_and_the_next_row_begins_an_episode(net_of):
    roll = Rollout(net_of())
    assert roll.note(0, terminated=[1], truncated=[2]) == ENDED
    assert roll.terminated[0].tolist() == [False, True, False]
    assert roll.truncated[0].tolist() == [False, False, True]
    assert roll.start[1].tolist() == [False, True, True]
    assert roll.note(1) == WRITTEN
    assert not roll.start[2].any()


def test_the_last_row_begins_nothing(net_of):
    roll = Rollout(net_of())
    assert roll.note(STEPS - 1, terminated=[0]) == ENDED
    assert not roll.start.any()


@pytest.mark.parametrize(
    "strange",
    [
        {"reward": [0, np.nan, 0]},
        {"reward": [0, 0, -np.inf]},
        {"reward": [1e39, 0, 0]},
        {"obs": np.array([*[0.0] * 11, np.inf], np.float32)},
        {"obs": np.array([np.nan, *[0.0] * 11], np.float32)},
    ],
    ids=str,
)
def test_what_is_not_finite_is_told_and_not_written(net_of, strange):
    roll = Rollout(net_of())
    assert roll.note(0, **strange) == STRANGE
    assert (roll.reward == -9).all()
    assert not roll.valid.any()
    assert roll.returns.tolist() == [0, 0, 0]


def test_a_row_that_does_not_count_adds_nothing_and_begins_an_episode(net_of):
    roll = Rollout(net_of())
    assert roll.note(0, valid=np.array([True, True, False])) == WRITTEN
    assert not roll.valid[0, 2]
    assert roll.start[1].tolist() == [False, False, True]
    assert (roll.returns[2], roll.lengths[2]) == (0, 0)


@pytest.mark.parametrize("streams", [1, 3, 300])
def test_next_values_are_the_next_rows_but_where_an_episode_was_cut(isa, net_of, rng, streams):
    net = net_of(isa=isa)
    roll = Rollout(net, streams=streams)
    for t in range(STEPS):
        roll.act(t, observe(net, streams, seed=t), rng)
        roll.note(t, truncated=[0] if t in (1, STEPS - 1) else [])
    roll.next_value[[1, STEPS - 1], 0] = 77.0  # the value of what the cut episode would have seen
    last = observe(net, streams, seed=99)
    roll.finish(last)
    expected = np.concatenate([roll.value[1:], net.values(last)[None]])
    expected[[1, STEPS - 1], 0] = 77.0
    np.testing.assert_array_equal(roll.next_value, expected)


def collected(net, steps, streams, seed):
    roll = Rollout(net, steps, streams)
    world = kernel.streams_new("CartPole-v1", streams)
    kernel.streams_seed(world, np.array([5, 6, 7, 8 + seed], np.uint64))
    obs = np.empty((streams, 4), np.float32)
    kernel.streams_begin(world, None, obs)
    return roll, world, obs


def test_a_whole_rollout_is_the_same_as_its_steps_one_by_one(isa, net_of, new_rng):
    net, steps, streams = net_of(isa=isa, inputs=4, sizes=(2,)), 250, 3
    ours, world, obs = collected(net, steps, streams, 0)
    elapsed = np.array([0, 480, 490])  # two of them run into the limit of 500 steps, unless they fall
    task = np.zeros((4, streams))
    kernel.streams_set_state(world, task, elapsed, np.array([5, 6, 7, 8], np.uint64))
    kernel.streams_observe(world, obs)
    start, ended = np.array([True, False, False]), np.full((steps * streams, 4), -1.0)
    rng = new_rng(1)
    count, seconds = ours.collect(rng, world, obs, start, ended)
    assert seconds >= 0
    theirs, other, seen = collected(net, steps, streams, 0)
    kernel.streams_set_state(other, task, elapsed, np.array([5, 6, 7, 8], np.uint64))
    kernel.streams_observe(other, seen)
    random, log = new_rng(1), []
    theirs.start[0] = [True, False, False]
    for t in range(steps):
        theirs.act(t, seen, random)
        final, reward = np.empty_like(seen), np.empty(streams)
        flags = np.empty(streams, bool), np.empty(streams, bool)
        kernel.streams_step(other, theirs.env_action[t], seen, reward, *flags, final)
        theirs.note(t, reward=reward, terminated=np.flatnonzero(flags[0]), truncated=np.flatnonzero(flags[1]))
        for i in np.flatnonzero(flags[0] | flags[1]):
            if flags[1][i]:
                theirs.next_value[t, i] = net.values(final[i : i + 1])[0]
            log.append((i, theirs.returns[i], theirs.lengths[i], float(flags[1][i])))
            theirs.returns[i], theirs.lengths[i] = 0, 0
    theirs.finish(seen)
    assert count == len(log) > 3
    np.testing.assert_array_equal(ended[:count], log)
    assert (ended[count:] == -1).all()
    names = ("obs", "action", "log_prob", "value", "next_value", "reward", "terminated", "truncated", "start", "valid")
    for name in names:
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), err_msg=name)
    np.testing.assert_array_equal(rng, random)
    np.testing.assert_array_equal(obs, seen)
    np.testing.assert_array_equal(start, ours.terminated[-1] | ours.truncated[-1])
    np.testing.assert_array_equal(ours.returns, theirs.returns)
    np.testing.assert_array_equal(ours.lengths, theirs.lengths)


def test_a_world_that_leaves_the_finite_stops_the_rollout_at_that_step(net_of, rng):
    net = net_of(inputs=4, sizes=(2,))
    roll, world, obs = collected(net, 10, 2, 0)
    state = np.zeros((4, 2))
    state[3, 1] = np.nan  # the second pole's velocity
    kernel.streams_set_state(world, state, np.zeros(2, np.int64), np.array([1, 2, 3, 4], np.uint64))
    start, ended = np.zeros(2, bool), np.empty((20, 4))
    said, _ = roll.collect(rng, world, obs, start, ended)
    assert said == -1
    assert not roll.valid.any()


@pytest.mark.parametrize(
    "shape", [{"hidden": (17,), "sizes": (3,)}, {"hidden": (), "sizes": (1,), "inputs": 40}], ids=str
)
def test_gsde_acts_with_one_matrix_per_stream_until_the_next_draw(isa, net_of, rng, shape):
    net = net_of(isa=isa, head="gsde", **shape)
    rollout = Rollout(net, streams=300)
    obs = np.random.default_rng(0).normal(size=(300, net.inputs)).astype(np.float32)
    for t in range(STEPS):
        before = rng.copy()
        rollout.act(t, obs, rng)
        assert np.array_equal(before, rng) == (t > 0)
    np.testing.assert_array_equal(rollout.action[1:], np.broadcast_to(rollout.action[0], rollout.action[1:].shape))
    # Over the streams the noise is normal with the variance of the formula.
    std = np.sqrt(net.features(obs) ** 2 @ np.exp(2.0 * net.log_std[0].astype(np.float64)) + 1e-6)
    z = (rollout.action[0] - net.forward(obs)[0]) / std
    assert abs(z.mean()) < 5 / z.size**0.5
    assert z.std() == pytest.approx(1.0, abs=5 / z.size**0.5)
    expected = (-0.5 * z**2 - np.log(std) - 0.5 * np.log(2 * np.pi)).sum(axis=1)
    np.testing.assert_allclose(rollout.log_prob[0], expected, rtol=1e-3, atol=1e-3)


def test_a_rollout_of_more_streams_than_there_are_matrices_is_refused(net_of, rng):
    large, small = net_of(head="gsde", sizes=(2,)), net_of(head="gsde", sizes=(2,))
    rollout = Rollout(large, streams=9)
    rollout.net = small
    with pytest.raises(ValueError, match="another network"):
        rollout.act(0, np.zeros((9, 4), np.float32), rng)
