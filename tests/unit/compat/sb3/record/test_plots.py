import numpy as np
import pytest


def test_a_window_of_two_is_the_mean_of_neighbours():
    pytest.importorskip("pandas", reason="pandas is not installed")
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    from surefoot.compat.sb3.record import plots

    x, y = plots.window_func(np.arange(4), np.array([0.0, 2.0, 4.0, 8.0]), 2, np.mean)
    assert x.tolist() == [1, 2, 3]
    assert y.tolist() == [1.0, 3.0, 6.0]
