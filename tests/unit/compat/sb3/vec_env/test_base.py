import numpy as np
import pytest
from tests.unit.compat.sb3.small_env import CountingEnv

from surefoot.compat.sb3.vec_env import DummyVecEnv, VecMonitor
from surefoot.compat.sb3.vec_env.base import tile_images


def test_three_pictures_are_a_grid_of_two_by_two():
    grid = tile_images([np.full((2, 2, 3), i + 1) for i in range(3)])
    assert grid.shape == (4, 4, 3)
    assert grid[0, 0, 0] == 1
    assert grid[0, 2, 0] == 2
    assert grid[2, 0, 0] == 3
    assert grid[3, 3, 0] == 0


def test_a_mode_that_the_envs_do_not_have_is_a_warning():
    env = DummyVecEnv([lambda: CountingEnv(render_mode="rgb_array")])
    assert env.render().shape == (2, 2, 3)
    with pytest.warns(UserWarning, match="cannot render"):
        assert env.render("ansi") is None


def test_a_wrapper_has_the_attributes_of_the_inner_env():
    env = VecMonitor(DummyVecEnv([CountingEnv]))
    assert env.buf_dones.tolist() == [False]
    with pytest.raises(AttributeError):
        _ = env.nothing
    assert env.getattr_depth_check("episode_count", already_found=True).endswith("VecMonitor")
