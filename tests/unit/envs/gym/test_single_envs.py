"""N single envs stepped in this process."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from surefoot.envs.gym.single_envs import EnvsWorld
from surefoot.errors import AllActionsMasked, CheckpointIncompatible, EnvError, ShapeError, SpaceError


class Walk(gym.Env[Any, Any]):
    """Shows its step; ends after `length` steps. `answer` and `first` change what it returns."""

    def __init__(self, length: int = 3, n: int = 2) -> None:
        self.observation_space = spaces.Box(0, 99, (1,), np.float64)
        self.action_space = spaces.Discrete(n)
        self.length, self.t = length, 0
        self.closed = False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.t = 0
        return self.first()

    def step(self, action: Any) -> Any:
        self.t += 1
        return self.answer(action)

    def first(self) -> Any:
        return np.array([0.0]), {}

    def answer(self, action: Any) -> Any:
        return np.array([self.t], np.float64), 1.0, self.t >= self.length, False, {}

    def close(self) -> None:
        self.closed = True


def test_it_gives_the_digits_of_gymnasiums_own_vector_env() -> None:
    fns = [lambda: gym.make("CartPole-v1", max_episode_steps=20)] * 4
    ours, theirs = EnvsWorld(fns), SyncVectorEnv(fns, autoreset_mode=AutoresetMode.SAME_STEP)
    assert np.array_equal(ours.reset(11).obs["obs"], theirs.reset(seed=11)[0])
    rng = np.random.default_rng(0)
    for _ in range(60):
        action = rng.integers(0, 2, 4)
        step, (obs, reward, terminated, truncated, _) = ours.step(action), theirs.step(action)
        assert np.array_equal(step.view.obs["obs"], obs)
        assert np.array_equal(step.reward, reward)
        assert np.array_equal(step.terminated, terminated)
        assert np.array_equal(step.truncated, truncated & ~terminated)
        assert step.valid.all()


def test_arrays_have_the_dtypes_a_world_promises() -> None:
    world = EnvsWorld([Walk, Walk])
    assert world.reset(0).obs["obs"].dtype == np.float32
    step = world.step(np.array([0, 1]))
    assert step.reward.dtype == np.float64
    assert step.terminated.dtype == step.truncated.dtype == step.valid.dtype == np.bool_
    assert step.final_obs is None


def test_nothing_that_was_given_out_changes_later() -> None:
    world = EnvsWorld([Walk, lambda: Walk(2)])
    world.reset(0)
    world.step(np.array([0, 0]))
    step = world.step(np.array([0, 0]))
    assert step.final_obs is not None
    for _ in range(5):
        world.step(np.array([0, 0]))
    assert step.view.obs["obs"].tolist() == [[2.0], [0.0]]
    assert step.final_obs["obs"].tolist() == [[2.0], [2.0]]
    assert step.terminated.tolist() == [False, True]


def test_an_exception_is_named_by_env_and_step_and_keeps_its_cause() -> None:
    class Breaks(Walk):
        def answer(self, action: Any) -> Any:
            if self.t == 2:
                raise ZeroDivisionError("the pole is infinitely long")
            return super().answer(action)

    world = EnvsWorld([Walk, Breaks])
    world.reset(0)
    world.step(np.array([0, 0]))
    with pytest.raises(EnvError, match=r"env 1 of Walk at step 2 .*infinitely long") as caught:
        world.step(np.array([0, 0]))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_the_old_gyms_four_values_are_told_apart() -> None:
    class Old(Walk):
        def answer(self, action: Any) -> Any:
            return np.array([0.0]), 1.0, False, {}

    world = EnvsWorld([Old])
    world.reset(0)
    with pytest.raises(EnvError, match=r"returned 4 values.*terminated, truncated"):
        world.step(np.array([0]))


@pytest.mark.parametrize("first", [np.array([0.0]), np.array([0.0, 1.0]), (np.array([0.0]), None)])
def test_a_reset_that_does_not_return_two_values_is_refused(first: Any) -> None:
    class Old(Walk):
        def first(self) -> Any:
            return first

    with pytest.raises(EnvError, match=r"must return \(observation, info\)"):
        EnvsWorld([Old]).reset(0)


def test_an_observation_of_another_shape_than_its_space_is_refused_at_reset() -> None:
    class Wide(Walk):
        def first(self) -> Any:
            return np.zeros(3), {}

    with pytest.raises(EnvError, match=r"\[3\], but its space has \[1\]"):
        EnvsWorld([Wide]).reset(0)


def test_envs_with_other_spaces_are_refused_and_closed() -> None:
    made: list[Walk] = []

    def build(n: int) -> Walk:
        made.append(Walk(n=n))
        return made[-1]

    with pytest.raises(SpaceError, match=r"env 1 of Walk .*Discrete\(3\)"):
        EnvsWorld([lambda: build(2), lambda: build(3)])
    assert [env.closed for env in made] == [True, True]


def test_too_few_actions_are_refused() -> None:
    world = EnvsWorld([Walk, Walk])
    world.reset(0)
    with pytest.raises(ShapeError, match="1 actions for the 2 streams"):
        world.step(np.array([0]))


def test_a_world_must_be_reset_once_before_it_is_stepped() -> None:
    with pytest.raises(EnvError, match="before its first reset"):
        EnvsWorld([Walk]).step(np.array([0]))


def test_an_env_may_scribble_on_its_action() -> None:
    class Scribbles(Walk):
        def __init__(self) -> None:
            super().__init__()
            self.action_space = spaces.Box(-1, 1, (1,))

        def answer(self, action: Any) -> Any:
            action *= 0
            return super().answer(action)

    world = EnvsWorld([Scribbles])
    world.reset(0)
    action = np.array([[0.5]], np.float32)
    world.step(action)
    assert action.tolist() == [[0.5]]


def test_termination_wins_over_truncation() -> None:
    class Both(Walk):
        def answer(self, action: Any) -> Any:
            return np.array([0.0]), 0.0, True, True, {}

    world = EnvsWorld([Both])
    world.reset(0)
    step = world.step(np.array([0]))
    assert (step.terminated.tolist(), step.truncated.tolist()) == ([True], [False])


def test_success_is_reported_where_an_episode_ends() -> None:
    class Wins(Walk):
        def answer(self, action: Any) -> Any:
            obs, reward, over, cut, _ = super().answer(action)
            return obs, reward, over, cut, {"is_success": np.bool_(True)}

    world = EnvsWorld([lambda: Wins(1), lambda: Wins(2)])
    world.reset(0)
    success = world.step(np.array([0, 0])).stats["success"]
    assert success[0] == 1.0
    assert np.isnan(success[1])


def test_an_env_without_spaces_is_refused() -> None:
    class Bare(gym.Env[Any, Any]):
        pass

    with pytest.raises(SpaceError, match="Bare has no observation_space"):
        EnvsWorld([Bare])


@pytest.mark.parametrize(
    ("info", "message"),
    [
        ({"is_success": np.array([1, 0])}, r"is_success.*one number"),
        ({"is_success": "yes"}, "is_success.*one number"),
        (None, "NoneType as its info"),
    ],
)
def test_an_info_that_cannot_be_read_is_refused_by_name(info: Any, message: str) -> None:
    class Odd(Walk):
        def answer(self, action: Any) -> Any:
            return *super().answer(action)[:4], info

    world = EnvsWorld([lambda: Odd(1)])
    world.reset(0)
    with pytest.raises(EnvError, match=f"env 0 of Odd.*{message}"):
        world.step(np.array([0]))


def test_success_may_be_an_array_of_one_number() -> None:
    class Wins(Walk):
        def answer(self, action: Any) -> Any:
            return *super().answer(action)[:4], {"is_success": np.array([True])}

    world = EnvsWorld([lambda: Wins(1)])
    world.reset(0)
    assert world.step(np.array([0])).stats["success"].tolist() == [1.0]


class Masked(Walk):
    """Allows only the action t mod 2."""

    def first(self) -> Any:
        return np.array([0.0]), {"action_mask": np.array([1, 0], np.int8)}

    def answer(self, action: Any) -> Any:
        assert action == (self.t - 1) % 2
        obs, reward, over, cut, _ = super().answer(action)
        return obs, reward, over, cut, {"action_mask": np.array([self.t % 2 == 0, self.t % 2 == 1])}


class MaskedByMethod(Walk):
    def action_masks(self) -> Any:
        return [self.t % 2 == 0, self.t % 2 == 1]


class MaskedInView(Walk):
    def __init__(self, length: int = 3) -> None:
        super().__init__(length)
        self.observation_space = spaces.Dict({"x": self.observation_space, "action_mask": spaces.MultiBinary(2)})

    def first(self) -> Any:
        return {"x": np.array([0.0]), "action_mask": np.array([1, 0])}, {}

    def answer(self, action: Any) -> Any:
        obs, *rest = super().answer(action)
        return {"x": obs, "action_mask": np.array([self.t % 2 == 0, self.t % 2 == 1])}, *rest


@pytest.mark.parametrize("kind", [Masked, MaskedByMethod, MaskedInView])
def test_a_mask_is_that_of_the_view_also_when_an_episode_has_just_begun(kind: Any) -> None:
    world = EnvsWorld([lambda: gym.wrappers.TimeLimit(kind(3), 99), lambda: gym.wrappers.TimeLimit(kind(4), 99)])
    view = world.reset(0)
    turns = [[0, 0], [1, 1], [0, 0], [0, 1], [1, 0]]
    for turn in turns:
        assert view.action_mask is not None
        assert view.action_mask.argmax(axis=1).tolist() == turn
        assert view.action_mask.sum(axis=1).tolist() == [1, 1]
        view = world.step(np.array(turn)).view
    assert "action_mask" not in world.observation


def test_a_mask_that_allows_nothing_is_refused() -> None:
    class Stuck(MaskedByMethod):
        def action_masks(self) -> Any:
            return [False, False]

    with pytest.raises(AllActionsMasked, match="stream 0 of Stuck"):
        EnvsWorld([Stuck]).reset(0)


def test_a_mask_that_is_missing_later_is_refused() -> None:
    class Forgets(Masked):
        def answer(self, action: Any) -> Any:
            return np.array([0.0]), 0.0, False, False, {}

    world = EnvsWorld([Forgets])
    world.reset(0)
    with pytest.raises(EnvError, match="gives none now"):
        world.step(np.array([0]))


def test_only_the_streams_asked_for_begin_anew() -> None:
    world = EnvsWorld([Walk, Walk])
    world.reset(0)
    world.step(np.array([0, 0]))
    view = world.reset_streams(np.array([False, True]))
    assert view is not None
    assert view.obs["obs"].tolist() == [[1.0], [0.0]]
    assert world.step(np.array([0, 0])).view.obs["obs"].tolist() == [[2.0], [1.0]]


def test_a_resumed_world_goes_on_to_the_last_digit() -> None:
    def build() -> EnvsWorld:
        return EnvsWorld([lambda: gym.make("CartPole-v1", max_episode_steps=15)] * 3)

    rng = np.random.default_rng(1)
    actions = rng.integers(0, 2, (80, 3))
    world = build()
    assert world.inexact is None
    world.reset(3)
    for action in actions[:37]:
        world.step(action)
    other = build()
    view = other.set_state(world.state())
    assert np.array_equal(view.obs["obs"], world.view.obs["obs"])  # type: ignore[union-attr]
    for action in actions[37:]:
        a, b = world.step(action), other.step(action)
        assert np.array_equal(a.view.obs["obs"], b.view.obs["obs"])
        assert np.array_equal(a.terminated, b.terminated)
        assert np.array_equal(a.truncated, b.truncated)


def test_a_state_of_another_number_of_envs_is_refused() -> None:
    world = EnvsWorld([lambda: gym.make("CartPole-v1")] * 2)
    world.reset(0)
    with pytest.raises(CheckpointIncompatible, match="of 2 envs of CartPole-v1, but this world has 1"):
        EnvsWorld([lambda: gym.make("CartPole-v1")]).set_state(world.state())


def test_an_env_that_cannot_say_where_it_is_is_named_with_what_would_help() -> None:
    world = EnvsWorld([Walk])
    world.reset(0)
    assert world.inexact is not None
    assert "Walk" in world.inexact
    assert "get_state() and set_state(state)" in world.inexact
    assert list(world.state()) == ["restart_seed"]
    assert EnvsWorld([Walk]).set_state(world.state()).obs["obs"].tolist() == [[0.0]]


def test_no_picture_without_a_render_mode() -> None:
    world = EnvsWorld([Walk])
    world.reset(0)
    assert world.render() is None


def test_the_picture_is_the_first_streams() -> None:
    class Draws(Walk):
        def __init__(self, grey: int) -> None:
            super().__init__()
            self.render_mode, self.grey = "rgb_array", grey

        def render(self) -> Any:
            return np.full((2, 2, 3), self.grey, np.uint8)

    world = EnvsWorld([lambda: Draws(7), lambda: Draws(9)])
    world.reset(0)
    frame = world.render()
    assert frame is not None
    assert (frame == 7).all()
