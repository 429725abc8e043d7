import numpy as np
import pytest
from tests.unit.compat.sb3.small_env import CountingEnv

from surefoot.compat.sb3.vec_env import DummyVecEnv, VecNormalize
from surefoot.compat.sb3.vec_env.normalize import RunningMeanStd


def test_merged_moments_are_those_of_all_rows():
    rows = np.random.default_rng(0).normal(size=(20, 3))
    moments = RunningMeanStd(epsilon=0.0, shape=(3,))
    for part in (rows[:5], rows[5:]):
        moments.update(part)
    assert np.allclose(moments.mean, rows.mean(axis=0))
    assert np.allclose(moments.var, rows.var(axis=0))


def test_statistics_are_saved_without_pickle(tmp_path):
    env = VecNormalize(DummyVecEnv([CountingEnv]), clip_obs=3.0)
    env.reset()
    for _ in range(9):
        env.step([0])
    env.save(tmp_path / "stats.pkl")
    loaded = VecNormalize.load(tmp_path / "stats.pkl", DummyVecEnv([CountingEnv]))
    assert loaded.clip_obs == 3.0
    assert np.array_equal(loaded.obs_rms.mean, env.obs_rms.mean)
    assert loaded.ret_rms.count == env.ret_rms.count
    original = env.get_original_obs()
    assert np.allclose(env.unnormalize_obs(env.normalize_obs(original))[0, 0], original[0, 0], atol=1e-4)
    (tmp_path / "other").write_bytes(b"\x80\x04.")
    with pytest.raises(ValueError, match="pickle"):
        VecNormalize.load(tmp_path / "other", DummyVecEnv([CountingEnv]))


def test_nothing_changes_without_training():
    env = VecNormalize(DummyVecEnv([CountingEnv]), training=False)
    env.reset()
    env.step([0])
    assert env.obs_rms.count == pytest.approx(1e-4)
