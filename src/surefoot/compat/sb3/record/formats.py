"""Formats that a `Logger` writes: table, JSON lines, CSV, TensorBoard; and the values that only TensorBoard has."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Values = Mapping[str, Any]
Excluded = Mapping[str, Any]


@dataclass
class Video:
    """A video [N, T, C, H, W] for TensorBoard."""

    frames: Any
    fps: float


@dataclass
class Figure:
    """A matplotlib figure for TensorBoard; `close` closes it afterwards."""

    figure: Any
    close: bool


@dataclass
class Image:
    """A picture for TensorBoard, with axes as in "HWC"."""

    image: Any
    dataformats: str


@dataclass
class HParam:
    """Hyperparameters and the metrics to compare them by, for TensorBoard's HPARAMS page."""

    hparam_dict: Mapping[str, Any]
    metric_dict: Mapping[str, Any]

    def __post_init__(self) -> None:
        if not self.metric_dict:
            raise ValueError("metric_dict is empty; TensorBoard shows hyperparameters only with a metric")


class FormatUnsupportedError(NotImplementedError):
    """A value that a format cannot write."""

    def __init__(self, unsupported_formats: Sequence[str], value_description: str) -> None:
        text = ", ".join(unsupported_formats)
        super().__init__(
            f"{value_description} cannot be written as {text}; pass exclude=({text!r},) to record to skip it there"
        )


class KVWriter:
    """Writes names and values."""

    def write(self, key_values: Values, key_excluded: Excluded, step: int = 0) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class SeqWriter:
    """Writes words."""

    def write_sequence(self, sequence: list[str]) -> None:
        raise NotImplementedError


def filter_excluded_keys(key_values: Values, key_excluded: Excluded, _format: str) -> dict[str, Any]:
    """Return the values that are not excluded from a format."""

    def excluded(key: str) -> bool:
        names = key_excluded.get(key)
        return names is not None and _format in names

    return {key: value for key, value in key_values.items() if not excluded(key)}


def _refuse_media(value: Any, formats: Sequence[str]) -> None:
    for kind, name in ((Video, "video"), (Figure, "figure"), (Image, "image"), (HParam, "hparam")):
        if isinstance(value, kind):
            raise FormatUnsupportedError(formats, name)


def _is_tensor(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "detach")


class HumanOutputFormat(KVWriter, SeqWriter):
    """A table for people, to a file or a stream. Longer names and values are cut to `max_length`."""

    def __init__(self, filename_or_file: Any, max_length: int = 36) -> None:
        self.max_length = max_length
        self.own_file = isinstance(filename_or_file, str | os.PathLike)
        if self.own_file:
            self.file: Any = open(filename_or_file, "w", encoding="utf-8")  # noqa: SIM115
        else:
            assert hasattr(filename_or_file, "write"), f"a name or a stream is needed, not {filename_or_file!r}"
            self.file = filename_or_file

    def write(self, key_values: Values, key_excluded: Excluded, step: int = 0) -> None:
        rows: dict[tuple[str, str], str] = {}
        section = ""
        for key, value in sorted(filter_excluded_keys(key_values, key_excluded, "stdout").items()):
            if key_excluded.get(key) is not None and "log" in key_excluded[key]:
                continue
            _refuse_media(value, ["stdout", "log"])
            tag, slash, name = key.partition("/")
            if slash:
                section = tag
                rows[section, self._truncate(f"{section}/")] = ""
                name = f"   {name}"
            else:
                section, name = "", key
            shown = self._truncate(f"{value:<8.3g}" if isinstance(value, float) else str(value))
            if (section, self._truncate(name)) in rows:
                raise ValueError(
                    f"Key {key} is truncated to {self._truncate(name)!r}, as another one; use a larger max_length than "
                    f"{self.max_length}"
                )
            rows[section, self._truncate(name)] = shown
        if not rows:
            warnings.warn("there is nothing to write in the log table", stacklevel=2)
            return
        first = max(len(name) for _, name in rows)
        second = max(len(value) for value in rows.values())
        line = "-" * (first + second + 7)
        table = [f"| {name:<{first}} | {value:<{second}} |" for (_, name), value in rows.items()]
        self.file.write("\n".join([line, *table, line]) + "\n")
        self.file.flush()

    def _truncate(self, text: str) -> str:
        return text if len(text) <= self.max_length else text[: self.max_length - 3] + "..."

    def write_sequence(self, sequence: list[str]) -> None:
        self.file.write(" ".join(sequence) + "\n")
        self.file.flush()

    def close(self) -> None:
        if self.own_file:
            self.file.close()


class JSONOutputFormat(KVWriter):
    """One JSON object per row."""

    def __init__(self, filename: str) -> None:
        self.file = open(filename, "w", encoding="utf-8")  # noqa: SIM115

    def write(self, key_values: Values, key_excluded: Excluded, step: int = 0) -> None:
        row: dict[str, Any] = {}
        for key, value in filter_excluded_keys(key_values, key_excluded, "json").items():
            _refuse_media(value, ["json"])
            # numpy's and torch's numbers are lists or numbers in JSON.
            row[key] = value.tolist() if hasattr(value, "tolist") else value
        if row:
            self.file.write(json.dumps(row) + "\n")
            self.file.flush()

    def close(self) -> None:
        self.file.close()


class CSVOutputFormat(KVWriter):
    """A CSV file; a name that appears later adds a column, and the file is written again."""

    def __init__(self, filename: str) -> None:
        self.file = open(filename, "w+", encoding="utf-8")  # noqa: SIM115
        self.keys: list[str] = []
        self.separator, self.quotechar = ",", '"'

    def write(self, key_values: Values, key_excluded: Excluded, step: int = 0) -> None:
        values = filter_excluded_keys(key_values, key_excluded, "csv")
        for value in values.values():
            _refuse_media(value, ["csv"])
        if new := sorted(values.keys() - set(self.keys)):
            self.keys += new
            self.file.seek(0)
            rows = self.file.readlines()[1:]
            self.file.seek(0)
            self.file.write(self.separator.join(self.keys) + "\n")
            for row in rows:
                # Earlier rows have no value in the new columns.
                self.file.write(row.rstrip("\n") + self.separator * len(new) + "\n")
        if not self.keys:
            return
        self.file.write(self.separator.join(self._cell(values.get(key)) for key in self.keys) + "\n")
        self.file.flush()

    def _cell(self, value: Any) -> str:
        if value is None:
            return ""
        if isinstance(value, str):
            quoted = value.replace(self.quotechar, self.quotechar * 2).replace("\n", " ")
            return f"{self.quotechar}{quoted}{self.quotechar}"
        text = str(value)
        return f"{self.quotechar}{text}{self.quotechar}".replace("\n", " ") if self.separator in text else text

    def close(self) -> None:
        self.file.close()


class TensorBoardOutputFormat(KVWriter):
    """TensorBoard event files: numbers, histograms of arrays, texts, videos, figures, pictures, hyperparameters."""

    def __init__(self, folder: str) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as why:
            raise ImportError("TensorBoard is not installed: pip install tensorboard") from why
        self.writer: Any = SummaryWriter(log_dir=folder)
        self._is_closed = False

    def write(self, key_values: Values, key_excluded: Excluded, step: int = 0) -> None:
        assert not self._is_closed, "the TensorBoard writer is closed"
        for key, value in filter_excluded_keys(key_values, key_excluded, "tensorboard").items():
            if isinstance(value, str):
                self.writer.add_text(key, value, step)
            elif isinstance(value, np.ndarray) or _is_tensor(value):
                self.writer.add_histogram(key, value, step)
            elif isinstance(value, int | float | np.number):
                self.writer.add_scalar(key, value, step)
            elif isinstance(value, Video):
                self.writer.add_video(key, value.frames, step, value.fps)
            elif isinstance(value, Figure):
                self.writer.add_figure(key, value.figure, step, close=value.close)
            elif isinstance(value, Image):
                self.writer.add_image(key, value.image, step, dataformats=value.dataformats)
            elif isinstance(value, HParam):
                self._write_hparams(value)
        self.writer.flush()

    def _write_hparams(self, value: HParam) -> None:
        # Written to the run's own file, not to a subdirectory as `SummaryWriter.add_hparams` would.
        from torch.utils.tensorboard.summary import hparams

        for summary in hparams(dict(value.hparam_dict), metric_dict=dict(value.metric_dict)):
            self.writer.file_writer.add_summary(summary)

    def close(self) -> None:
        if not self._is_closed:
            self.writer.close()
            self._is_closed = True
