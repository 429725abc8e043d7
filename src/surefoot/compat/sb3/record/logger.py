"""SB3's `Logger`: named values that are written to several formats at `dump`."""

from __future__ import annotations

import datetime
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from surefoot.compat.sb3.record.formats import (
    CSVOutputFormat,
    HumanOutputFormat,
    JSONOutputFormat,
    KVWriter,
    SeqWriter,
    TensorBoardOutputFormat,
)

DEBUG, INFO, WARN, ERROR, DISABLED = 10, 20, 30, 40, 50


def make_output_format(_format: str, log_dir: str | os.PathLike[str], log_suffix: str = "") -> KVWriter:
    """Return the writer of a format: stdout, log, json, csv or tensorboard."""
    os.makedirs(log_dir, exist_ok=True)
    match _format:
        case "stdout":
            return HumanOutputFormat(sys.stdout)
        case "log":
            return HumanOutputFormat(os.path.join(log_dir, f"log{log_suffix}.txt"))
        case "json":
            return JSONOutputFormat(os.path.join(log_dir, f"progress{log_suffix}.json"))
        case "csv":
            return CSVOutputFormat(os.path.join(log_dir, f"progress{log_suffix}.csv"))
        case "tensorboard":
            return TensorBoardOutputFormat(os.fspath(log_dir))
        case _:
            raise ValueError(f"{_format!r} is not a log format; use stdout, log, json, csv or tensorboard")


class Logger:
    """Named values that are collected by `record` and written by `dump`."""

    def __init__(self, folder: str | None, output_formats: Sequence[KVWriter]) -> None:
        self.name_to_value: dict[str, Any] = defaultdict(float)
        self.name_to_count: dict[str, int] = defaultdict(int)
        self.name_to_excluded: dict[str, tuple[str, ...]] = {}
        self.level = INFO
        self.dir = folder
        self.output_formats = list(output_formats)

    @staticmethod
    def to_tuple(string_or_tuple: str | tuple[str, ...] | None) -> tuple[str, ...]:
        """Return names of formats as a tuple; None is ("",)."""
        if string_or_tuple is None:
            return ("",)
        return string_or_tuple if isinstance(string_or_tuple, tuple) else (string_or_tuple,)

    def record(self, key: str, value: Any, exclude: str | tuple[str, ...] | None = None) -> None:
        """Set the value of `key` for the next `dump`; the formats in `exclude` do not write it."""
        self.name_to_value[key] = value
        self.name_to_excluded[key] = self.to_tuple(exclude)

    def record_mean(self, key: str, value: float | None, exclude: str | tuple[str, ...] | None = None) -> None:
        """Add `value` to the mean of `key` since the last `dump`."""
        if value is None:
            return
        mean, count = self.name_to_value[key], self.name_to_count[key]
        self.name_to_value[key] = mean * count / (count + 1) + value / (count + 1)
        self.name_to_count[key] = count + 1
        self.name_to_excluded[key] = self.to_tuple(exclude)

    def dump(self, step: int = 0) -> None:
        """Write all values, and forget them."""
        if self.level == DISABLED:
            return
        for writer in self.output_formats:
            writer.write(self.name_to_value, self.name_to_excluded, step)
        self.name_to_value.clear()
        self.name_to_count.clear()
        self.name_to_excluded.clear()

    def log(self, *args: Any, level: int = INFO) -> None:
        """Write words to the text formats, if `level` is at least that of the logger."""
        if self.level <= level:
            self._do_log(args)

    def debug(self, *args: Any) -> None:
        """Write words at the level DEBUG."""
        self.log(*args, level=DEBUG)

    def info(self, *args: Any) -> None:
        """Write words at the level INFO."""
        self.log(*args, level=INFO)

    def warn(self, *args: Any) -> None:
        """Write words at the level WARN."""
        self.log(*args, level=WARN)

    def error(self, *args: Any) -> None:
        """Write words at the level ERROR."""
        self.log(*args, level=ERROR)

    def set_level(self, level: int) -> None:
        self.level = level

    def get_dir(self) -> str | None:
        """Return the directory of the log files."""
        return self.dir

    def close(self) -> None:
        for writer in self.output_formats:
            writer.close()

    def _do_log(self, args: tuple[Any, ...]) -> None:
        for writer in self.output_formats:
            if isinstance(writer, SeqWriter):
                writer.write_sequence(list(map(str, args)))


def configure(folder: str | None = None, format_strings: Sequence[str] | None = None) -> Logger:
    """Return a logger. The default folder is `$SB3_LOGDIR` or a temporary one, the default formats are stdout, log and csv.

    `$SB3_LOG_FORMAT` names the default formats, separated by commas.
    """
    if folder is None:
        folder = os.getenv("SB3_LOGDIR")
    if folder is None:
        now = datetime.datetime.now().strftime("SB3-%Y-%m-%d-%H-%M-%S-%f")
        folder = os.path.join(tempfile.gettempdir(), now)
    folder = os.fspath(folder)
    os.makedirs(folder, exist_ok=True)
    if format_strings is None:
        format_strings = os.getenv("SB3_LOG_FORMAT", "stdout,log,csv").split(",")
    formats = [make_output_format(name, folder) for name in format_strings if name]
    logger = Logger(folder, formats)
    # A logger without formats is the one of verbose=0, which prints nothing.
    if formats and [name for name in format_strings if name] != ["stdout"]:
        logger.log(f"Logging to {folder}")
    return logger


def read_json(filename: str) -> Any:
    """Return the rows of a JSON log as a pandas DataFrame."""
    import json

    pandas = pandas_module("loading results")
    with open(filename, encoding="utf-8") as file:
        return pandas.DataFrame([json.loads(line) for line in file])


def read_csv(filename: str) -> Any:
    """Return the rows of a CSV log as a pandas DataFrame."""
    return pandas_module("loading results").read_csv(filename, index_col=None, comment="#")


def pandas_module(purpose: str) -> Any:
    """Return pandas, which Surefoot does not install, or raise one sentence that names the purpose."""
    try:
        return import_module("pandas")
    except ImportError as why:
        raise ImportError(f"pandas is required for {purpose}: pip install pandas") from why
