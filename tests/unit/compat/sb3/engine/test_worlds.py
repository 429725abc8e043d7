import gymnasium as gym
import numpy as np
from gymnasium import spaces
from tests.unit.compat.sb3.small_env import CountingEnv

from surefoot.compat.sb3.engine.worlds import NormalizedWorld, VecEnvWorld, built_in_world, row_of
from surefoot.compat.sb3.make_env import make_vec_env
from surefoot.compat.sb3.vec_env import DummyVecEnv, VecNormalize


def test_only_an_unchanged_env_is_replaced():
    assert built_in_world(make_vec_env("CartPole-v1", 3)).num_envs == 3
    assert built_in_world(VecNormalize(make_vec_env("CartPole-v1", env_kwargs={"max_episode_steps": 9}))) is None
    assert built_in_world(make_vec_env("CartPole-v1", env_kwargs={"max_episode_steps": 9})) is None
    assert built_in_world(make_vec_env("CartPole-v1", wrapper_class=gym.Wrapper)) is None
    heavy = make_vec_env("CartPole-v1")
    heavy.envs[0].unwrapped.gravity = 20.0
    assert built_in_world(heavy) is None


def test_a_truncated_episode_keeps_its_last_observation():
    world = VecEnvWorld(DummyVecEnv([CountingEnv]), rows=True, last_obs=None, masks=False, on_step=lambda *_: None)
    world.reset(0)
    steps = [world.step(np.zeros(1, int)) for _ in range(4)]
    assert steps[3].truncated[0]
    assert steps[3].final_obs["obs"][0, 0] == 4
    assert steps[3].view.obs["obs"][0, 0] == 0
    assert steps[2].final_obs is None


def test_rows_are_one_hot_for_choices():
    assert row_of(np.array([2, 0]), spaces.Discrete(3), 2).tolist() == [[0, 0, 1], [1, 0, 0]]
    assert row_of(np.array([[1, 2]]), spaces.MultiDiscrete([2, 3]), 1).tolist() == [[0, 1, 0, 0, 1]]


def test_a_built_in_world_is_normalized_as_the_vec_env_would_be():
    env = VecNormalize(make_vec_env("Acrobot-v1", 3), gamma=0.9, clip_reward=2.0)
    twin = VecNormalize(make_vec_env("Acrobot-v1", 3), gamma=0.9, clip_reward=2.0)
    world = built_in_world(env)
    assert isinstance(world, NormalizedWorld)
    raw = [world.world.reset(0).obs["obs"].copy()]
    world.reset(0)
    outputs = []
    for t in range(20):
        step = world.step(np.full(3, t % 3))
        raw.append(env.get_original_obs())
        outputs.append((step.view.obs["obs"], step.reward))
    twin.after_reset(raw[0])
    for obs, (seen, reward) in zip(raw[1:], outputs, strict=True):
        expected = twin.after_step(obs, np.full(3, -1.0), np.zeros(3, bool))
        np.testing.assert_array_equal(expected[0], seen)
        np.testing.assert_array_equal(expected[1], reward.astype(np.float32))
    assert outputs[-1][1][0] > -1.0


def test_the_log_has_returns_before_scaling():
    world = built_in_world(VecNormalize(make_vec_env("CartPole-v1", 2)))
    world.reset(0)
    steps = [world.step(np.zeros(2, int)) for _ in range(30)]
    first = next(t for t, step in enumerate(steps) if step.terminated[0])
    assert steps[first].stats["whole_return"][0] == first + 1
    assert sum(step.reward[0] for step in steps[: first + 1]) != first + 1
