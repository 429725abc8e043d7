"""`Monitor`: returns, lengths and times of episodes, in `info["episode"]` and in CSV files."""

from __future__ import annotations

import csv
import json
import os
import time
from collections.abc import Mapping
from glob import glob
from typing import Any

import gymnasium as gym

from surefoot.compat.sb3.record.logger import pandas_module

Env = gym.Env[Any, Any]


class LoadMonitorResultsError(Exception):
    """No monitor file was found."""


class ResultsWriter:
    """A monitor file: a JSON comment, the names of the columns (r, l, t and `extra_keys`), one row per episode."""

    def __init__(
        self,
        filename: str = "",
        header: Mapping[str, float | str] | None = None,
        extra_keys: tuple[str, ...] = (),
        override_existing: bool = True,
    ) -> None:
        filename = os.path.realpath(filename)
        if not filename.endswith(Monitor.EXT):
            folder = os.path.isdir(filename)
            filename = os.path.join(filename, Monitor.EXT) if folder else f"{filename}.{Monitor.EXT}"
        os.makedirs(os.path.dirname(filename), exist_ok=True)
        # newline: the csv module writes the line ends itself.
        self.file_handler = open(filename, "w" if override_existing else "a", newline="\n", encoding="utf-8")  # noqa: SIM115
        self.logger = csv.DictWriter(self.file_handler, fieldnames=("r", "l", "t", *extra_keys))
        if override_existing:
            self.file_handler.write(f"#{json.dumps(dict(header or {}))}\n")
            self.logger.writeheader()
        self.file_handler.flush()

    def write_row(self, epinfo: Mapping[str, Any]) -> None:
        self.logger.writerow(dict(epinfo))
        self.file_handler.flush()

    def close(self) -> None:
        self.file_handler.close()


class Monitor(gym.Wrapper[Any, Any, Any, Any]):
    """Counts the episodes of one env: `info["episode"]` has r (return), l (length), t (seconds since the start).

    `filename` writes them to a CSV file too. `reset_keywords` and `info_keywords` are stored with each episode.
    """

    EXT = "monitor.csv"

    def __init__(
        self,
        env: Env,
        filename: str | None = None,
        allow_early_resets: bool = True,
        reset_keywords: tuple[str, ...] = (),
        info_keywords: tuple[str, ...] = (),
        override_existing: bool = True,
    ) -> None:
        super().__init__(env)
        self.t_start = time.time()
        self.results_writer: ResultsWriter | None = None
        if filename is not None:
            header = {"t_start": self.t_start, "env_id": str(env.spec.id if env.spec is not None else None)}
            keys = reset_keywords + info_keywords
            self.results_writer = ResultsWriter(str(filename), header, keys, override_existing)
        self.reset_keywords, self.info_keywords = reset_keywords, info_keywords
        self.allow_early_resets = allow_early_resets
        self.rewards: list[float] = []
        self.needs_reset = True
        self.episode_returns: list[float] = []
        self.episode_lengths: list[int] = []
        self.episode_times: list[float] = []
        self.total_steps = 0
        self.current_reset_info: dict[str, Any] = {}

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:  # type: ignore[override]  # any argument of the env
        if not self.allow_early_resets and not self.needs_reset:
            raise RuntimeError("Tried to reset an environment before done; pass allow_early_resets=True to allow it")
        self.rewards, self.needs_reset = [], False
        for key in self.reset_keywords:
            if key not in kwargs:
                raise ValueError(f"Expected you to pass keyword argument {key} into reset")
            self.current_reset_info[key] = kwargs[key]
        return self.env.reset(**kwargs)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:  # type: ignore[override]
        """Take a step and count it."""
        if self.needs_reset:
            raise RuntimeError("Tried to step environment that needs reset")
        obs, reward, terminated, truncated, info = self.env.step(action)
        self.rewards.append(float(reward))
        if terminated or truncated:
            self.needs_reset = True
            total, length, seconds = sum(self.rewards), len(self.rewards), time.time() - self.t_start
            episode: dict[str, Any] = {"r": round(total, 6), "l": length, "t": round(seconds, 6)}
            episode |= {key: info[key] for key in self.info_keywords}
            self.episode_returns.append(total)
            self.episode_lengths.append(length)
            self.episode_times.append(seconds)
            episode |= self.current_reset_info
            if self.results_writer is not None:
                self.results_writer.write_row(episode)
            info["episode"] = episode
        self.total_steps += 1
        return obs, reward, terminated, truncated, info

    def close(self) -> None:
        """Close the env and the file."""
        super().close()
        if self.results_writer is not None:
            self.results_writer.close()

    def get_total_steps(self) -> int:
        return self.total_steps

    def get_episode_rewards(self) -> list[float]:
        return self.episode_returns

    def get_episode_lengths(self) -> list[int]:
        return self.episode_lengths

    def get_episode_times(self) -> list[float]:
        """Return the times at which the episodes ended, in seconds since the start."""
        return self.episode_times


def get_monitor_files(path: str | os.PathLike[str]) -> list[str]:
    return glob(os.path.join(path, "*" + Monitor.EXT))


def load_results(path: str | os.PathLike[str]) -> Any:
    """Return the episodes of all monitor files of a directory as a pandas DataFrame, in order of time."""
    pandas = pandas_module("loading results")
    files = get_monitor_files(path)
    if not files:
        raise LoadMonitorResultsError(f"no file *{Monitor.EXT} in {path}")
    frames: list[Any] = []
    for name in files:
        with open(name, encoding="utf-8") as file:
            header = json.loads(file.readline()[1:])
            frame: Any = pandas.read_csv(file, index_col=None)
            # Times of a file count from its own start.
            frame["t"] += header["t_start"]
            frames.append(frame)
    # An empty frame has no types, and pandas would warn about guessing them.
    frames = [frame for frame in frames if not frame.empty] or frames[:1]
    table = pandas.concat(frames).sort_values("t").reset_index()
    table["t"] -= table["t"].min() if len(table) else 0.0
    return table
