"""Learning curves from monitor files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

try:
    from matplotlib import pyplot as plt
except ImportError as why:
    raise ImportError("matplotlib is required for plotting: pip install matplotlib") from why

from surefoot.compat.sb3.record.logger import pandas_module
from surefoot.compat.sb3.record.monitor import load_results

pandas_module("plotting")

X_TIMESTEPS, X_EPISODES, X_WALLTIME = "timesteps", "episodes", "walltime_hrs"
POSSIBLE_X_AXES = [X_TIMESTEPS, X_EPISODES, X_WALLTIME]
EPISODES_WINDOW = 100


def rolling_window(array: np.ndarray, window: int) -> np.ndarray:
    """Return all windows of an array, on a new last axis."""
    return np.lib.stride_tricks.sliding_window_view(array, window, axis=-1)


def window_func(
    var_1: np.ndarray, var_2: np.ndarray, window: int, func: Callable[..., np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return `var_1` from the first full window on, and `func` of each window of `var_2`."""
    return var_1[window - 1 :], func(rolling_window(var_2, window), axis=-1)


def ts2xy(data_frame: Any, x_axis: str) -> tuple[np.ndarray, np.ndarray]:
    """Return x and the returns of the episodes; x is in timesteps, episodes or hours."""
    returns = data_frame.r.values
    match x_axis:
        case "timesteps":
            return np.cumsum(data_frame.l.values), returns
        case "episodes":
            return np.arange(len(data_frame)), returns
        case "walltime_hrs":
            return data_frame.t.values / 3600.0, returns
        case _:
            raise NotImplementedError(f"x_axis is {x_axis!r}; use one of {', '.join(POSSIBLE_X_AXES)}")


def plot_curves(
    xy_list: list[tuple[np.ndarray, np.ndarray]], x_axis: str, title: str, figsize: tuple[int, int] = (8, 2)
) -> None:
    """Plot returns as dots and their mean over 100 episodes as a line."""
    plt.figure(title, figsize=figsize)
    longest = max(xy[0][-1] for xy in xy_list)
    for x, y in xy_list:
        plt.scatter(x, y, s=2)
        if x.shape[0] >= EPISODES_WINDOW:
            plt.plot(*window_func(x, y, EPISODES_WINDOW, np.mean))
    plt.xlim(0, longest)
    plt.title(title)
    plt.xlabel(x_axis)
    plt.ylabel("Episode Rewards")
    plt.tight_layout()


def plot_results(
    dirs: list[str], num_timesteps: int | None, x_axis: str, task_name: str, figsize: tuple[int, int] = (8, 2)
) -> None:
    """Plot the monitor files of several directories, up to `num_timesteps`."""
    curves: list[tuple[np.ndarray, np.ndarray]] = []
    for folder in dirs:
        table = load_results(folder)
        if num_timesteps is not None:
            table = table[table.l.cumsum() <= num_timesteps]
        curves.append(ts2xy(table, x_axis))
    plot_curves(curves, x_axis, task_name, figsize)
