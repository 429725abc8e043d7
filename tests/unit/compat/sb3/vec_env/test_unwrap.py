import pytest
from tests.unit.compat.sb3.small_env import CountingEnv

from surefoot.compat.sb3.vec_env import (
    DummyVecEnv,
    VecMonitor,
    VecNormalize,
    sync_envs_normalization,
    unwrap_vec_normalize,
)


def test_statistics_are_copied_between_envs_that_are_wrapped_alike():
    train, evaluation = (VecMonitor(VecNormalize(DummyVecEnv([CountingEnv]))) for _ in range(2))
    train.reset()
    sync_envs_normalization(train, evaluation)
    assert unwrap_vec_normalize(evaluation).obs_rms.count == unwrap_vec_normalize(train).obs_rms.count
    with pytest.raises(AssertionError, match="wrap both alike"):
        sync_envs_normalization(train, VecMonitor(DummyVecEnv([CountingEnv])))
