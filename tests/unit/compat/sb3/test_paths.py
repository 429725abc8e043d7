import importlib

import pytest

import surefoot.sb3
from surefoot.compat.sb3 import paths


@pytest.mark.parametrize("path", sorted(paths.PATHS))
def test_every_mirrored_path_can_be_imported(path):
    if path.endswith("results_plotter"):
        pytest.importorskip("pandas", reason="pandas is not installed")
    assert importlib.import_module(path) is not None


def test_both_paths_of_a_module_are_one_module():
    from surefoot.compat.sb3.record import monitor

    assert importlib.import_module("surefoot.sb3.common.monitor") is monitor
    assert importlib.import_module("surefoot.sb3.ppo").PPO is surefoot.sb3.PPO
