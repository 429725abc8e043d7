"""The toy worlds: every answer here is worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.data.spaces import Discrete, MultiDiscrete
from surefoot.envs.api import World
from surefoot.envs.builtin.streams import Streams
from surefoot.envs.builtin.toys import TOYS, Bandit, ContextBandit, Corridor, Endless, Masked, Target, TimeLimit
from surefoot.errors import ConfigError, EnvError

GAMMA = 0.9


def some_actions(world: World, mask: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
    n = world.num_envs
    match world.action:
        case Discrete():
            allowed = np.ones((n, world.action.n), bool) if mask is None else mask
            return np.array([rng.choice(np.flatnonzero(row)) for row in allowed])
        case MultiDiscrete():
            return rng.integers(world.action.nvec, size=(n, len(world.action.nvec)))
        case box:
            return rng.uniform(-1, 1, (n, *box.shape)).astype(np.float32)


@pytest.mark.parametrize("name", TOYS)
def test_a_toy_hands_out_what_its_spaces_say(name: str) -> None:
    world = TOYS[name](3)
    view, rng = world.reset(seed=0), np.random.default_rng(0)
    low, high = world.observation["obs"].bounds()
    for _ in range(30):
        step = world.step(some_actions(world, view.action_mask, rng))
        view = step.view
        seen = [view.obs["obs"]] if step.final_obs is None else [view.obs["obs"], step.final_obs["obs"]]
        for obs in seen:
            assert (obs.dtype, obs.shape) == (np.float32, (3, *low.shape))
            assert ((low <= obs) & (obs <= high)).all()
        assert (step.reward.dtype, step.reward.shape) == (np.float64, (3,))
        assert not (step.terminated & step.truncated).any()
        assert step.valid.all()
    assert world.render() is None
    assert world.inexact is None
    assert world.name == name


@pytest.mark.parametrize("name", TOYS)
def test_a_toy_goes_on_from_its_state_to_the_last_digit(name: str) -> None:
    world, again = TOYS[name](3), TOYS[name](3)
    view, rng = world.reset(seed=7), np.random.default_rng(0)
    for _ in range(7):
        view = world.step(some_actions(world, view.action_mask, rng)).view
    resumed = again.set_state(world.state())
    assert np.array_equal(resumed.obs["obs"], view.obs["obs"])
    for _ in range(30):
        action = some_actions(world, view.action_mask, rng)
        one, two = world.step(action), again.step(action)
        view = one.view
        for a, b in ((one.view.obs["obs"], two.view.obs["obs"]), (one.reward, two.reward)):
            assert np.array_equal(a, b)
        assert np.array_equal(one.terminated, two.terminated)
        assert np.array_equal(one.truncated, two.truncated)


@pytest.mark.parametrize("actions", [1, 2])
def test_the_endless_world_pays_one_for_ever(actions: int) -> None:
    world = Streams("Endless", Endless(actions), 2)
    world.reset(seed=0)
    for t in range(1000):
        step = world.step(np.full(2, t % actions))
        assert step.reward.tolist() == [1.0, 1.0]
        assert not (step.terminated | step.truncated).any()
        assert step.view.obs["obs"].tolist() == [[1.0], [1.0]]
    assert Endless().value(GAMMA) == pytest.approx(10.0)


def test_a_bandit_pays_its_arms_mean_and_ends() -> None:
    bandit = Bandit((0.5, -1.0, 2.0))
    world = Streams("Bandit", bandit, 3)
    step = world.step(np.array([0, 1, 2]))
    assert step.reward.tolist() == [0.5, -1.0, 2.0]
    assert step.terminated.all()
    assert bandit.best == 2


def test_a_noisy_bandit_pays_its_mean_on_average() -> None:
    world = Streams("Bandit", Bandit((0.0, 3.0), noise=0.5), 10_000)
    reward = world.step(np.ones(10_000, np.int64)).reward
    assert reward.mean() == pytest.approx(3.0, abs=5 * 0.5 / 100)
    assert reward.std() == pytest.approx(0.5, abs=0.02)


def test_naming_the_context_pays_one_and_anything_else_nothing() -> None:
    world = Streams("ContextBandit", ContextBandit(4), 50)
    context = world.reset(seed=0).obs["obs"].argmax(axis=1)
    assert set(context) == {0, 1, 2, 3}
    answer = np.where(np.arange(50) < 25, context, (context + 1) % 4)
    step = world.step(answer)
    assert step.reward.tolist() == [1.0] * 25 + [0.0] * 25
    assert step.terminated.all()
    assert (step.view.obs["obs"].argmax(axis=1) != context).any()


def test_a_corridor_of_five_takes_five_steps_to_the_right() -> None:
    world = Streams("Corridor", Corridor(5), 1)
    world.reset(seed=0)
    rewards, cells = [], []
    for t in range(5):
        step = world.step(np.array([1]))
        rewards.append(float(step.reward[0]))
        cells.append(int((step.final_obs or step.view.obs)["obs"][0].argmax()))
        assert step.terminated[0] == (t == 4)
    assert rewards == [0.0, 0.0, 0.0, 0.0, 1.0]
    assert cells == [1, 2, 3, 4, 5]
    assert step.view.obs["obs"][0].argmax() == 0


def test_a_corridors_value_is_the_discounted_reward_of_its_best_walk() -> None:
    corridor = Corridor(5)
    assert corridor.value(GAMMA) == pytest.approx(0.9 * 0.9 * 0.9 * 0.9)
    assert corridor.value(GAMMA, cell=4) == 1.0


def test_the_corridors_left_wall_holds_and_who_never_goes_right_is_cut() -> None:
    world = Streams("Corridor", Corridor(2), 1)
    world.reset(seed=0)
    steps = [world.step(np.array([0])) for _ in range(40)]
    assert all(step.view.obs["obs"][0].argmax() == 0 for step in steps)
    assert [bool(step.truncated[0]) for step in steps] == [False] * 39 + [True]
    assert sum(step.reward[0] for step in steps) == 0.0


@pytest.mark.parametrize("terminated", [False, True])
def test_the_time_is_up_after_exactly_so_many_steps(terminated: bool) -> None:
    world = Streams("TimeLimit", TimeLimit(4, terminated=terminated), 1)
    world.reset(seed=0)
    steps = [world.step(np.array([0])) for _ in range(8)]
    ends = [False, False, False, True] * 2
    assert [bool(step.terminated[0]) for step in steps] == (ends if terminated else [False] * 8)
    assert [bool(step.truncated[0]) for step in steps] == ([False] * 8 if terminated else ends)
    assert [float(step.view.obs["obs"][0, 0]) for step in steps] == [0.25, 0.5, 0.75, 0.0] * 2
    assert steps[3].final_obs is not None
    assert steps[3].final_obs["obs"].tolist() == [[1.0]]


def test_a_time_limit_is_worth_what_is_left_only_if_it_terminates() -> None:
    assert TimeLimit(4).value(GAMMA, elapsed=3) == pytest.approx(10.0)
    assert TimeLimit(4, terminated=True).value(GAMMA) == pytest.approx(1 + 0.9 + 0.81 + 0.729)
    assert TimeLimit(4, terminated=True).value(GAMMA, elapsed=3) == pytest.approx(1.0)


def test_the_target_pays_minus_the_squared_miss() -> None:
    world = Streams("Target", Target(2), 2)
    obs = world.reset(seed=0).obs["obs"]
    step = world.step(np.array([-0.5 * obs[0], -0.5 * obs[1] + np.array([0.3, -0.4])], np.float32))
    assert step.reward == pytest.approx([0.0, -0.25], abs=1e-6)
    assert step.terminated.all()


def test_the_mask_allows_the_context_and_its_neighbour_of_which_one_pays() -> None:
    world = Streams("Masked", Masked(5), 40)
    view = world.reset(seed=0)
    context = view.obs["obs"].argmax(axis=1)
    assert view.action_mask is not None
    assert view.action_mask.dtype == np.bool_
    for row, c in zip(view.action_mask, context, strict=True):
        assert set(np.flatnonzero(row)) == {c, (c + 1) % 5}
    step = world.step(np.where(np.arange(40) < 20, context, (context + 1) % 5))
    assert step.reward.tolist() == [0.0] * 20 + [1.0] * 20
    assert step.view.action_mask is not None
    assert (step.view.action_mask.argmax(axis=1) != view.action_mask.argmax(axis=1)).any()


def test_a_masked_action_is_refused_by_name() -> None:
    world = Streams("Masked", Masked(5), 2)
    world.set_state(world.state() | {"task": np.array([[0, 4]])})
    with pytest.raises(EnvError, match=r"action 3 of stream 1 is masked; allowed are \[4, 0\]"):
        world.step(np.array([1, 3]))


def test_each_right_knob_pays_a_half() -> None:
    world = TOYS["surefoot/TwoKnobs-v0"](3)
    obs = world.reset(seed=0).obs["obs"]
    first, second = obs[:, :3].argmax(axis=1), obs[:, 3:].argmax(axis=1)
    action = np.array(
        [
            [first[0], second[0]],
            [first[1], (second[1] + 1) % 4],
            [(first[2] + 1) % 3, (second[2] + 1) % 4],
        ]
    )
    step = world.step(action)
    assert step.reward.tolist() == [1.0, 0.5, 0.0]
    assert step.terminated.all()


def test_a_knob_beyond_its_last_position_is_refused() -> None:
    with pytest.raises(EnvError, match=r"each from 0 to below \[3, 4\]"):
        TOYS["surefoot/TwoKnobs-v0"](1).step(np.array([[3, 0]]))


def test_a_toy_too_small_to_play_is_refused() -> None:
    with pytest.raises(ConfigError, match="length is 0; it must be at least 1"):
        Corridor(0)
