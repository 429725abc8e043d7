import numpy as np
import pytest
from gymnasium import spaces
from tests.unit.compat.sb3.small_env import CountingEnv

from surefoot.compat.sb3.vec_env import DummyVecEnv, VecCheckNan, VecMonitor, VecTransposeImage
from surefoot.compat.sb3.vec_env.wrappers import VecVideoRecorder


def test_a_monitor_counts_returns_and_writes_them(tmp_path):
    env = VecMonitor(DummyVecEnv([CountingEnv]), str(tmp_path / "x"))
    env.reset()
    infos = [env.step([0])[3][0] for _ in range(4)]
    assert "episode" not in infos[2]
    assert (infos[3]["episode"]["r"], infos[3]["episode"]["l"]) == (4.0, 4)
    env.close()
    assert (tmp_path / "x.monitor.csv").read_text().splitlines()[2].startswith("4.0,4,")


def test_nan_is_found_in_an_action():
    env = VecCheckNan(DummyVecEnv([CountingEnv]), raise_exception=True)
    with pytest.raises(ValueError, match="NaN in the action"):
        env.step([np.nan])


def test_channels_are_moved_first():
    space = spaces.Box(0, 255, (4, 5, 3), np.uint8)
    assert VecTransposeImage.transpose_space(space).shape == (3, 4, 5)
    assert VecTransposeImage.transpose_image(np.zeros((2, 4, 5, 3))).shape == (2, 3, 4, 5)


def test_a_video_needs_pictures(tmp_path):
    with pytest.raises(AssertionError, match="rgb_array"):
        VecVideoRecorder(DummyVecEnv([CountingEnv]), str(tmp_path), lambda step: True)
