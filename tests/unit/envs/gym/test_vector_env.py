"""Gymnasium's vector envs as a World."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.vector.utils import batch_space

from surefoot.envs.gym.vector_env import VectorWorld
from surefoot.errors import AllActionsMasked, EnvError


def cartpoles(n: int = 2, **options: Any) -> SyncVectorEnv:
    return SyncVectorEnv([lambda: gym.make("CartPole-v1", max_episode_steps=5)] * n, **options)


class Scripted(VectorEnv[Any, Any, Any]):
    """Two streams that return preset values and end at every step. Its arrays are reused."""

    def __init__(self, mode: Any, *, obs: gym.Space[Any] | None = None, action: gym.Space[Any] | None = None) -> None:
        self.metadata = {"autoreset_mode": mode}
        self.num_envs = 2
        self.single_observation_space = obs or spaces.Box(-9, 9, (1,), np.float32)
        self.observation_space = batch_space(self.single_observation_space, 2)
        self.single_action_space = action or spaces.Discrete(3)
        self.action_space = batch_space(self.single_action_space, 2)
        self.first: tuple[Any, dict[str, Any]] = (np.zeros((2, 1), np.float32), {})
        self.then: tuple[Any, dict[str, Any]] = (np.ones((2, 1), np.float32), {})
        self.terminated = np.array([True, True])
        self.truncated = np.array([False, False])
        self.actions: list[Any] = []
        self.seeds: list[Any] = []

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.seeds.append(seed)
        return self.first

    def step(self, actions: Any) -> Any:
        self.actions.append(actions)
        obs, info = self.then
        return obs, np.array([1.0, 2.0]), self.terminated, self.truncated, info


@pytest.mark.parametrize("mode", [None, "sometimes", 3])
def test_an_unknown_autoreset_mode_is_refused_with_what_to_set(mode: Any) -> None:
    with pytest.raises(EnvError, match=r"autoreset_mode.*NEXT_STEP, SAME_STEP or DISABLED"):
        VectorWorld(Scripted(mode))


@pytest.mark.parametrize("mode", ["NextStep", AutoresetMode.NEXT_STEP])
def test_a_mode_may_be_given_by_its_value(mode: Any) -> None:
    assert VectorWorld(Scripted(mode)).mode is AutoresetMode.NEXT_STEP


def test_termination_wins_over_truncation() -> None:
    env = Scripted(AutoresetMode.NEXT_STEP)
    env.truncated = np.array([True, False])
    env.terminated = np.array([True, False])
    world = VectorWorld(env)
    world.reset(0)
    step = world.step(np.array([0, 0]))
    assert step.terminated.tolist() == [True, False]
    assert step.truncated.tolist() == [False, False]


def test_same_step_without_the_final_observation_is_refused() -> None:
    world = VectorWorld(Scripted(AutoresetMode.SAME_STEP))
    world.reset(0)
    with pytest.raises(EnvError, match=r"stream 0 ended without info\['final_obs'\]"):
        world.step(np.array([0, 0]))


def test_same_step_refuses_a_stream_that_its_mask_leaves_out() -> None:
    env = Scripted(AutoresetMode.SAME_STEP)
    final = np.array([np.array([7.0]), None], object)
    env.then = (env.then[0], {"final_obs": final, "_final_obs": np.array([True, False])})
    world = VectorWorld(env)
    world.reset(0)
    with pytest.raises(EnvError, match="stream 1 ended without"):
        world.step(np.array([0, 0]))


def _objects(*values: Any) -> np.ndarray:
    out = np.empty(len(values), object)
    for i, value in enumerate(values):
        out[i] = value
    return out


@pytest.mark.parametrize(
    "final",
    [
        _objects(np.array([7.0]), np.array([8.0])),
        np.array([[7.0], [8.0]]),
    ],
)
def test_final_observations_are_read_in_every_layout(final: Any) -> None:
    env = Scripted(AutoresetMode.SAME_STEP)
    env.then = (env.then[0], {"final_obs": final, "_final_obs": np.array([True, True])})
    world = VectorWorld(env)
    world.reset(0)
    step = world.step(np.array([0, 0]))
    assert step.final_obs is not None
    assert step.final_obs["obs"].tolist() == [[7.0], [8.0]]
    assert step.view.obs["obs"].tolist() == [[1.0], [1.0]]


@pytest.mark.parametrize(
    "final",
    [
        _objects({"a": np.array([7.0])}, {"a": np.array([8.0])}),
        {"a": np.array([[7.0], [8.0]])},
    ],
)
def test_final_observations_of_a_dict_space_are_read_in_every_layout(final: Any) -> None:
    env = Scripted(AutoresetMode.SAME_STEP, obs=spaces.Dict({"a": spaces.Box(-9, 9, (1,))}))
    env.first = ({"a": np.zeros((2, 1))}, {})
    env.then = ({"a": np.ones((2, 1))}, {"final_obs": final, "_final_obs": np.array([True, True])})
    world = VectorWorld(env)
    world.reset(0)
    step = world.step(np.array([0, 0]))
    assert step.final_obs is not None
    assert step.final_obs["a"].tolist() == [[7.0], [8.0]]


@pytest.mark.parametrize(
    "final_info",
    [
        {"is_success": np.array([True, False]), "_is_success": np.array([True, True])},
        _objects({"is_success": True}, {"is_success": False}),
    ],
)
def test_success_is_read_from_the_final_info_and_not_from_the_new_episode(final_info: Any) -> None:
    env = Scripted(AutoresetMode.SAME_STEP)
    info = {"final_obs": np.zeros((2, 1)), "final_info": final_info, "is_success": np.array([False, True])}
    env.then = (env.then[0], info)
    world = VectorWorld(env)
    world.reset(0)
    assert world.step(np.array([0, 0])).stats["success"].tolist() == [1.0, 0.0]


def test_success_is_unknown_where_no_episode_ended() -> None:
    env = Scripted(AutoresetMode.NEXT_STEP)
    env.terminated = np.array([False, True])
    env.then = (env.then[0], {"is_success": np.array([True, True])})
    world = VectorWorld(env)
    world.reset(0)
    success = world.step(np.array([0, 0])).stats["success"]
    assert np.isnan(success[0])
    assert success[1] == 1.0


def test_infos_as_a_list_are_refused() -> None:
    world = VectorWorld(gym.wrappers.vector.DictInfoToList(cartpoles()))
    world.reset(0)
    with pytest.raises(EnvError, match="DictInfoToList"):
        world.step(np.array([0, 0]))


def test_a_mask_may_come_as_an_array_or_as_one_object_for_each_stream() -> None:
    env = Scripted(AutoresetMode.NEXT_STEP)
    env.terminated = np.array([False, False])
    env.first = (env.first[0], {"action_mask": np.array([[1, 0, 1], [1, 1, 1]], np.int8)})
    env.then = (env.then[0], {"action_mask": _objects([0, 0, 1], (np.array([1]), np.array([0, 1])))})
    world = VectorWorld(env)
    mask = world.reset(0).action_mask
    assert mask is not None
    assert mask.tolist() == [[True, False, True], [True, True, True]]
    mask = world.step(np.array([0, 0])).view.action_mask
    assert mask is not None
    assert mask.tolist() == [[False, False, True], [True, False, True]]


def test_a_mask_that_is_part_of_the_observation_is_not_observed() -> None:
    space = spaces.Dict({"x": spaces.Box(-9, 9, (1,)), "action_mask": spaces.MultiBinary(3)})
    env = Scripted(AutoresetMode.NEXT_STEP, obs=space)
    env.first = ({"x": np.zeros((2, 1)), "action_mask": np.array([[1, 0, 0], [0, 1, 1]])}, {})
    world = VectorWorld(env)
    view = world.reset(0)
    assert list(world.observation) == list(view.obs) == ["x"]
    assert view.action_mask is not None
    assert view.action_mask.tolist() == [[True, False, False], [False, True, True]]


def test_the_mask_of_an_episode_that_is_over_allows_everything_since_the_action_is_ignored() -> None:
    env = Scripted(AutoresetMode.NEXT_STEP)
    env.terminated = np.array([True, False])
    env.first = (env.first[0], {"action_mask": np.ones((2, 3))})
    env.then = (env.then[0], {"action_mask": np.array([[0, 0, 0], [0, 1, 0]])})
    world = VectorWorld(env)
    world.reset(0)
    mask = world.step(np.array([0, 0])).view.action_mask
    assert mask is not None
    assert mask.tolist() == [[True, True, True], [False, True, False]]


def test_a_mask_that_allows_nothing_is_refused() -> None:
    env = Scripted(AutoresetMode.NEXT_STEP)
    env.first = (env.first[0], {"action_mask": np.array([[1, 1, 1], [0, 0, 0]])})
    with pytest.raises(AllActionsMasked, match="stream 1"):
        VectorWorld(env).reset(0)


def test_a_mask_that_is_missing_later_is_refused() -> None:
    env = Scripted(AutoresetMode.NEXT_STEP)
    env.terminated = np.array([False, False])
    env.first = (env.first[0], {"action_mask": np.ones((2, 3))})
    world = VectorWorld(env)
    world.reset(0)
    with pytest.raises(EnvError, match=r"stream 0 .* gives none now"):
        world.step(np.array([0, 0]))


def test_a_mask_of_the_wrong_length_is_refused() -> None:
    env = Scripted(AutoresetMode.NEXT_STEP)
    env.first = (env.first[0], {"action_mask": np.ones((2, 4))})
    with pytest.raises(EnvError, match="4 entries; its action space has 3 choices"):
        VectorWorld(env).reset(0)


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("copy", [False, True])
def test_a_view_stays_as_it_was_when_gymnasium_uses_its_buffer_again(mode: AutoresetMode, copy: bool) -> None:
    world = VectorWorld(cartpoles(autoreset_mode=mode, copy=copy))
    before = world.reset(3)
    kept = before.obs["obs"].copy()
    for _ in range(7):
        world.step(np.array([1, 1]))
    assert np.array_equal(before.obs["obs"], kept)


def test_stream_i_is_seeded_with_seed_plus_i() -> None:
    view = VectorWorld(cartpoles(3)).reset(40)
    alone = [gym.make("CartPole-v1").reset(seed=40 + i)[0] for i in range(3)]
    assert np.array_equal(view.obs["obs"], np.stack(alone))


def test_float64_observations_are_cast_once() -> None:
    env = Scripted(AutoresetMode.NEXT_STEP, obs=spaces.Box(-9, 9, (1,), np.float64))
    env.first = (np.full((2, 1), 0.1), {})
    obs = VectorWorld(env).reset(0).obs["obs"]
    assert obs.dtype == np.float32
    assert obs[0, 0] == np.float32(0.1)


def test_the_native_cartpole_vector_env_has_ghost_rows() -> None:
    env = gym.make_vec("CartPole-v1", num_envs=2, vectorization_mode="vector_entry_point", max_episode_steps=3)
    world = VectorWorld(env)
    world.reset(0)
    rows = [world.step(np.array([0, 1])) for _ in range(4)]
    assert [row.truncated.tolist() for row in rows] == [[False] * 2, [False] * 2, [True] * 2, [False] * 2]
    assert [row.valid.all() for row in rows] == [True, True, True, False]
    assert world.reset_streams(np.array([True, False])) is None


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_stream_can_be_begun_anew_and_the_other_one_goes_on(mode: AutoresetMode) -> None:
    world = VectorWorld(cartpoles(autoreset_mode=mode))
    world.reset(0)
    before = world.step(np.array([1, 1])).view.obs["obs"]
    view = world.reset_streams(np.array([True, False]))
    assert view is not None
    assert np.abs(view.obs["obs"][0]).max() <= 0.05
    assert np.array_equal(view.obs["obs"][1], before[1])
    ends = [(world.step(np.array([1, 1])).truncated).tolist() for _ in range(5)]
    assert ends[3] == [False, True]
    assert ends[4] == [True, False]


def test_a_stream_that_was_begun_anew_does_not_wait_for_another_reset() -> None:
    world = VectorWorld(cartpoles(autoreset_mode=AutoresetMode.NEXT_STEP))
    world.reset(0)
    for _ in range(5):
        last = world.step(np.array([0, 1]))
    assert last.truncated.tolist() == [True, True]
    first = world.reset_streams(np.array([True, False]))
    step = world.step(np.array([1, 1]))
    assert first is not None
    assert step.valid.tolist() == [True, False]
    assert not np.array_equal(step.view.obs["obs"][0], first.obs["obs"][0])


def test_workers_without_shared_memory_do_not_carry_a_pending_reset_into_a_new_run() -> None:
    env = AsyncVectorEnv([lambda: gym.make("CartPole-v1", max_episode_steps=2)], shared_memory=False)
    world = VectorWorld(env)
    try:
        world.reset(0)
        world.step(np.array([1]))
        assert world.step(np.array([1])).truncated.tolist() == [True]
        first = world.reset(5).obs["obs"]
        step = world.step(np.array([1]))
    finally:
        world.close()
    alone = gym.make("CartPole-v1")
    assert np.array_equal(first[0], alone.reset(seed=5)[0])
    assert np.array_equal(step.view.obs["obs"][0], alone.step(1)[0])


def test_a_failing_vector_env_is_named_with_its_step() -> None:
    world = VectorWorld(cartpoles())
    world.reset(0)
    world.step(np.array([0, 0]))
    with pytest.raises(EnvError, match="at step 2 since its reset"):
        world.step(np.array([0, 9]))


def test_a_world_must_be_reset_once_before_it_is_stepped() -> None:
    with pytest.raises(EnvError, match="before its first reset"):
        VectorWorld(cartpoles()).step(np.array([0, 0]))


def test_a_vector_env_that_cannot_say_where_it_is_begins_other_episodes_and_says_so() -> None:
    world = VectorWorld(cartpoles(), "CartPole-v1")
    first = world.reset(0).obs["obs"]
    assert world.inexact is not None
    assert "CartPole-v1" in world.inexact
    world.step(np.array([0, 0]))
    state = world.state()
    again = VectorWorld(cartpoles()).set_state(state).obs["obs"]
    assert not np.array_equal(first, again)
    assert np.array_equal(again, VectorWorld(cartpoles()).set_state(state).obs["obs"])


class Counting(Scripted):
    """A vector env that can save its state."""

    def __init__(self) -> None:
        super().__init__(AutoresetMode.NEXT_STEP)
        self.count = 0

    def step(self, actions: Any) -> Any:
        self.count += 1
        over = np.array([self.count % 3 == 0, False])
        return np.full((2, 1), self.count), np.zeros(2), over, np.zeros(2, bool), {}

    def get_state(self) -> Any:
        return {"count": self.count}

    def set_state(self, state: Any) -> None:
        self.count = state["count"]


def test_a_vector_env_with_get_state_goes_on_where_it_was_pending_resets_included() -> None:
    world = VectorWorld(Counting())
    world.reset(0)
    for _ in range(3):
        last = world.step(np.array([0, 0]))
    state = world.state()
    other = VectorWorld(Counting())
    assert other.inexact is None
    assert np.array_equal(other.set_state(state).obs["obs"], last.view.obs["obs"])
    step = other.step(np.array([0, 0]))
    assert step.valid.tolist() == [False, True]
    assert step.view.obs["obs"].tolist() == [[4.0], [4.0]]


class Turns(gym.Env[Any, Any]):
    """Allows only the action t mod 2, by its info; ends after three steps."""

    observation_space = spaces.Box(0, 9, (1,))
    action_space = spaces.Discrete(2)

    def _answer(self) -> tuple[Any, dict[str, Any]]:
        return np.array([self.t], np.float32), {"action_mask": np.array([self.t % 2 == 0, self.t % 2 == 1], np.int8)}

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.t = 0
        return self._answer()

    def step(self, action: Any) -> Any:
        self.t += 1
        obs, info = self._answer()
        return obs, 0.0, self.t == 3, False, info


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_masks_belong_to_the_view_in_every_mode(mode: AutoresetMode) -> None:
    world = VectorWorld(SyncVectorEnv([Turns] * 2, autoreset_mode=mode))
    view = world.reset(0)
    assert world.reset_streams(np.array([False, False])) is view
    for t in range(9):
        assert view.action_mask is not None
        for stream, allowed in enumerate(view.action_mask):
            now = int(view.obs["obs"][stream, 0])
            assert allowed.tolist() == ([True, True] if now == 3 else [now % 2 == 0, now % 2 == 1])
        view = world.step(view.action_mask.argmax(axis=1)).view
        if t == 4:
            again = world.reset_streams(np.array([True, False]))
            assert again is not None
            view = again
