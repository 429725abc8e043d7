"""SB3's helper functions: seeds, schedules, devices, parameters, system information."""

from __future__ import annotations

import glob
import os
import platform
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor, nn

from surefoot._version import __version__
from surefoot.compat.sb3.record.logger import Logger, configure
from surefoot.compat.sb3.spaces import check_for_correct_spaces as check_for_correct_spaces
from surefoot.compat.sb3.spaces import check_shape_equal as check_shape_equal
from surefoot.compat.sb3.spaces import is_vectorized_observation as is_vectorized_observation
from surefoot.train.device import choose_device
from surefoot.train.interop.sb3_names import set_random_seed as set_random_seed

SB3_VERSION = "2.9.0"
"""The version of Stable-Baselines3 whose interface this is."""

Schedule = Callable[[float], float]
"""Returns a value for the share of the training that is left: 1 at the start, 0 at the end."""


class ConstantSchedule:
    """The same value all the time."""

    def __init__(self, val: float) -> None:
        self.val = val

    def __call__(self, _: float) -> float:
        return self.val

    def __repr__(self) -> str:
        return f"ConstantSchedule(val={self.val})"


class LinearSchedule:
    """A line from `start` to `end`, reached when the share `end_fraction` of the training is over."""

    def __init__(self, start: float, end: float, end_fraction: float) -> None:
        self.start, self.end, self.end_fraction = start, end, end_fraction

    def __call__(self, progress_remaining: float) -> float:
        over = 1.0 - progress_remaining
        if over > self.end_fraction:
            return self.end
        return self.start + over * (self.end - self.start) / self.end_fraction

    def __repr__(self) -> str:
        return f"LinearSchedule(start={self.start}, end={self.end}, end_fraction={self.end_fraction})"


class TableSchedule:
    """A function that was saved with a model: its values at equal distances from 1 to 0, with lines between them."""

    POINTS = 1001

    def __init__(self, values: list[float], name: str = "") -> None:
        """`name` is that of the function."""
        self.values, self.__name__ = values, name

    def __call__(self, progress_remaining: float) -> float:
        return float(np.interp(1.0 - progress_remaining, np.linspace(0.0, 1.0, len(self.values)), self.values))

    @classmethod
    def of(cls, schedule: Any) -> TableSchedule:
        values = [float(schedule(1.0 - i / (cls.POINTS - 1))) for i in range(cls.POINTS)]
        return cls(values, getattr(schedule, "__name__", type(schedule).__name__))

    def __repr__(self) -> str:
        return f"TableSchedule({self.__name__} from {self.values[0]} to {self.values[-1]})"


class FloatSchedule:
    """A number or a schedule as a schedule that returns floats."""

    def __init__(self, value_schedule: Any) -> None:
        if isinstance(value_schedule, FloatSchedule):
            self.value_schedule: Any = value_schedule.value_schedule
        elif isinstance(value_schedule, int | float):
            self.value_schedule = ConstantSchedule(float(value_schedule))
        else:
            assert callable(value_schedule), f"{value_schedule!r} is neither a number nor a function"
            self.value_schedule = value_schedule

    def __call__(self, progress_remaining: float) -> float:
        return float(self.value_schedule(progress_remaining))

    def __repr__(self) -> str:
        return f"FloatSchedule({self.value_schedule})"


def _deprecated(old: str, new: str) -> None:
    warnings.warn(f"{old} is deprecated; use {new}", DeprecationWarning, stacklevel=3)


def get_schedule_fn(value_schedule: Any) -> Schedule:
    """Deprecated: return `FloatSchedule(value_schedule)`."""
    _deprecated("get_schedule_fn", "FloatSchedule")
    return FloatSchedule(value_schedule)


def get_linear_fn(start: float, end: float, end_fraction: float) -> Schedule:
    """Deprecated: return `LinearSchedule(start, end, end_fraction)`."""
    _deprecated("get_linear_fn", "LinearSchedule")
    return LinearSchedule(start, end, end_fraction)


def constant_fn(val: float) -> Schedule:
    """Deprecated: return `ConstantSchedule(val)`."""
    _deprecated("constant_fn", "ConstantSchedule")
    return ConstantSchedule(val)


def explained_variance(y_pred: np.ndarray, y_true: np.ndarray) -> float:
    """Return 1 - Var[y_true - y_pred] / Var[y_true]; NaN if y_true is constant."""
    assert y_true.ndim == 1
    assert y_pred.ndim == 1
    variance = np.var(y_true)
    return float("nan") if variance == 0 else float(1 - np.var(y_true - y_pred) / variance)


def update_learning_rate(optimizer: torch.optim.Optimizer, learning_rate: float) -> None:
    """Set the learning rate of all groups of an optimizer."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate


def get_device(device: torch.device | str = "auto") -> torch.device:
    """Return the device; "auto" is a GPU if there is one, and an unavailable GPU is the CPU."""
    wanted = torch.device("cuda" if device == "auto" else device)
    return (
        torch.device("cpu") if wanted.type == "cuda" and not torch.cuda.is_available() else choose_device(str(wanted))
    )


def get_latest_run_id(log_path: str | os.PathLike[str] = "", log_name: str = "") -> int:
    """Return the highest N of the directories `log_name_N` in `log_path`; 0 if there is none."""
    pattern = re.compile(re.escape(log_name) + r"_(\d+)")
    names = (os.path.basename(path) for path in glob.glob(os.path.join(glob.escape(str(log_path)), "*")))
    return max((int(match[1]) for name in names if (match := pattern.fullmatch(name))), default=0)


def configure_logger(
    verbose: int = 0,
    tensorboard_log: str | None = None,
    tb_log_name: str = "",
    reset_num_timesteps: bool = True,
) -> Logger:
    """Return the logger of a model: stdout with `verbose`, TensorBoard under `tensorboard_log/tb_log_name_N`."""
    formats = ["stdout"] if verbose >= 1 else []
    if tensorboard_log is None:
        return configure(None, formats or [""])
    # A training that continues writes to the directory of the previous call.
    run = max(get_latest_run_id(tensorboard_log, tb_log_name) + reset_num_timesteps, 1 if reset_num_timesteps else 0)
    return configure(os.path.join(tensorboard_log, f"{tb_log_name}_{run}"), [*formats, "tensorboard"])


def safe_mean(arr: Any) -> float:
    """Return the mean, NaN for nothing."""
    return float("nan") if len(arr) == 0 else float(np.mean(arr))


def get_parameters_by_name(model: nn.Module, included_names: Iterable[str]) -> list[Tensor]:
    """Return the entries of the state dict whose name contains one of `included_names`."""
    names = list(included_names)
    return [x for name, x in model.state_dict().items() if any(part in name for part in names)]


def polyak_update(params: Iterable[Tensor], target_params: Iterable[Tensor], tau: float) -> None:
    """Move each target by the share `tau` to its parameter, in place."""
    with torch.no_grad():
        for param, target in zip(params, target_params, strict=True):
            target.data.mul_(1 - tau).add_(param.data, alpha=tau)


def zip_strict(*iterables: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    """Return `zip` of iterables that must have the same length."""
    return zip(*iterables, strict=True)


def obs_as_tensor(obs: Any, device: torch.device | str) -> Any:
    """Return an array or a dict of arrays as tensors."""
    if isinstance(obs, np.ndarray):
        return torch.as_tensor(obs, device=device)
    if isinstance(obs, dict):
        return {key: torch.as_tensor(part, device=device) for key, part in obs.items()}
    raise TypeError(
        f"an observation of type {type(obs).__name__} cannot be a tensor; pass an array or a dict of arrays"
    )


def get_system_info(print_info: bool = True) -> tuple[dict[str, str], str]:
    """Return versions of the system and its packages, as a dict and as text."""
    info = {
        "OS": f"{platform.platform()} {platform.version()}",
        "Python": platform.python_version(),
        "Stable-Baselines3": SB3_VERSION,
        "Surefoot": __version__,
        "PyTorch": torch.__version__,
        "GPU Enabled": str(torch.cuda.is_available()),
        "Numpy": np.__version__,
        "Gymnasium": gym.__version__,
    }
    text = "".join(f"- {name}: {value}\n" for name, value in info.items())
    if print_info:
        print(text)
    return info, text


def draw_seed() -> int:
    """Return a seed from torch's global generator, so that `set_random_seed` determines everything."""
    return int(torch.randint(0, 2**31 - 1, ()).item())
