import numpy as np
import pytest

from surefoot.compat.sb3.envs.identity import (
    FakeImageEnv,
    IdentityEnv,
    IdentityEnvBox,
    IdentityEnvMultiBinary,
    IdentityEnvMultiDiscrete,
)


@pytest.mark.parametrize(
    "env", [IdentityEnv(4), IdentityEnvMultiDiscrete(4), IdentityEnvMultiBinary(4), IdentityEnvBox()]
)
def test_repeating_the_observation_is_rewarded_until_the_time_limit(env):
    obs, _ = env.reset(seed=0)
    for step in range(env.ep_length):
        obs, reward, terminated, truncated, _ = env.step(obs)
        assert (reward, terminated, truncated) == (1.0, False, step == env.ep_length - 1)


def test_another_action_is_not_rewarded():
    env = IdentityEnvBox(eps=0.5)
    env.state = np.array([0.0], np.float32)
    assert env.step(np.array([0.51], np.float32))[1] == 0.0


def test_the_images_have_the_wanted_layout():
    env = FakeImageEnv(screen_height=40, screen_width=36, n_channels=3, channel_first=True, discrete=False)
    assert env.reset(seed=1)[0].shape == (3, 40, 36)
    assert [env.step(env.action_space.sample())[3] for _ in range(10)] == [False] * 9 + [True]
