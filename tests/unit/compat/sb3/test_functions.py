import numpy as np
import pytest
import torch

from surefoot.compat.sb3 import functions as f


def test_a_linear_schedule_ends_at_its_fraction():
    line = f.FloatSchedule(f.LinearSchedule(1.0, 0.0, 0.5))
    assert line(1.0) == 1.0
    assert line(0.75) == pytest.approx(0.5)
    assert line(0.2) == 0.0


def test_the_latest_run_is_the_highest_number(tmp_path):
    for name in ("PPO_1", "PPO_12", "PPO_x", "PPO_extra_40"):
        (tmp_path / name).mkdir()
    assert f.get_latest_run_id(tmp_path, "PPO") == 12
    assert f.get_latest_run_id(tmp_path, "A2C") == 0


def test_polyak_moves_the_target_by_tau():
    target = torch.zeros(3)
    f.polyak_update([torch.ones(3)], [target], 0.25)
    assert target.tolist() == [0.25] * 3


def test_explained_variance_of_a_constant_is_nan():
    assert np.isnan(f.explained_variance(np.arange(3.0), np.ones(3)))
    assert f.explained_variance(np.arange(3.0), np.arange(3.0)) == 1.0


def test_the_system_info_names_both_versions():
    info, text = f.get_system_info(print_info=False)
    assert info["Stable-Baselines3"] == f.SB3_VERSION
    assert "Surefoot" in text
