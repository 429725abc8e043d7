"""The flat record of telemetry 1.1: one JSON object per epoch, every number a float."""

from __future__ import annotations

import glob
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import msgspec

from surefoot.compat.townlet import records as old
from surefoot.errors import TelemetryError
from surefoot.telemetry.reader import LineProblem, read_line, read_records
from surefoot.telemetry.schema import Record, UpdateRecord

_OLD_NAMES = {new: name for name, new in old.OUR_NAMES.items()}


def flat_lines(update: UpdateRecord, *, offset: int) -> list[dict[str, Any]]:
    """Return the 1.1 objects of an update, one per epoch; the first has `log_stream_offset` = `offset`.

    A number that the update does not have is 0, as in files of that time. A number that was not finite is 0 too and is
    named in the key `nonfinite`, since 1.1 has no other place for it.
    """
    epochs: list[Mapping[str, float | None]] = [*update.epochs] or [{}]
    return [_flat(update, epoch, i, len(epochs), offset + i) for i, epoch in enumerate(epochs)]


def _flat(update: UpdateRecord, epoch: Mapping[str, float | None], i: int, epochs: int, offset: int) -> dict[str, Any]:
    m = {**update.m, **epoch}
    values = {_OLD_NAMES.get(name, name): x for name, x in m.items() if x is not None}
    line: dict[str, Any] = {key: float(values.get(key, 0.0)) for key in old.BASE}
    line["epoch"] = float(update.m.get("epoch") or i + 1)
    line["steps"] = float(update.env_steps)
    line |= {
        key: float(x)
        for key, x in values.items()
        if key in old.LATE + old.SOCIAL or key.startswith(("conflict.", "baseline_"))
    }
    line["telemetry_version"] = 1.1
    line |= {key: float(values.get(key, 0.0)) for key in old.CONFLICT}
    seconds = [x for x in update.seconds.values() if x is not None]
    # 1.1 requires these numbers; where the update has none, the closest one that it has.
    guesses = {
        "epoch_duration_sec": sum(seconds) / epochs,
        "cycle_id": max(update.updates - 1, 0),
        "batch_entropy_mean": values.get("loss_entropy", 0.0),
        "kl_divergence_max": abs(values.get("kl_divergence", 0.0)),
        "rollout_ticks": values.get("transitions", 0.0),
        "log_stream_offset": offset,
    }
    line |= {key: float(values.get(key, guesses.get(key, 0.0))) for key in old.NEW_IN_1_1}
    mode = update.labels.get("data_mode", "rollout")
    line["data_mode"] = mode if mode in old.DATA_MODES else "rollout"
    bad = [name.removeprefix("m.") for name in update.nonfinite]
    return line | ({"nonfinite": ", ".join(bad)} if bad else {})


class FlatMirror:
    """A `Mirror` that writes flat records beside the record; appends to an existing file.

    Args:
        path: The file.
        every: Write only every n-th epoch. `log_stream_offset` counts those left out too.
        max_lines: Rename a file with this many lines to `path`.1, .2, … (the highest is the newest) and start a new one;
            0 never does.
    """

    def __init__(self, path: Path | str, *, every: int = 1, max_lines: int = 0) -> None:
        if every < 1 or max_lines < 0:
            raise TelemetryError(f"every is {every} and max_lines {max_lines}; they are at least 1 and 0")
        self.path, self.every, self.max_lines = Path(path), every, max_lines
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # The newest part, for a file that was just rotated.
        self._lines, last = _written(self.path)
        self._offset = max([last, *(_written(part)[1] for part in self._parts()[-1:])]) + 1
        self._file = self.path.open("ab", buffering=0)

    def write(self, record: Record) -> None:
        """Append the epochs of an update, one `write` per line. Other kinds of records have no flat form."""
        if not isinstance(record, UpdateRecord):
            return
        for line in flat_lines(record, offset=self._offset):
            if self._offset % self.every == 0:
                if 0 < self.max_lines <= self._lines:
                    self._rotate()
                self._file.write(msgspec.json.encode(line) + b"\n")
                self._lines += 1
            self._offset += 1

    def _rotate(self) -> None:
        parts = self._parts()
        self._file.close()
        self.path.rename(f"{self.path}.{int(parts[-1].suffix[1:]) + 1 if parts else 1}")
        self._file, self._lines = self.path.open("ab", buffering=0), 0

    def _parts(self) -> list[Path]:
        """Return the files that were rotated out, oldest first."""
        parts = [p for p in self.path.parent.glob(f"{glob.escape(self.path.name)}.*") if p.suffix[1:].isdecimal()]
        return sorted((p for p in parts if p.stem == self.path.name), key=lambda p: int(p.suffix[1:]))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _written(path: Path) -> tuple[int, int]:
    """Return the number of lines of a log and its last `log_stream_offset`; -1 without one."""
    last = number = -1
    if not path.exists():
        return 0, last
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            item = read_line(path.name, number, line) if line.strip() else None
            if isinstance(item, LineProblem):
                raise TelemetryError(f"{item}; --ppo-log only appends to a log without errors: give a new file")
            if isinstance(item, UpdateRecord):
                last = max(last, int(item.m.get("log_stream_offset") or 0))
    return max(number, 0), last


def to_flat(run: Path | str, out: Path | str) -> Path:
    """Write the record of a run in the flat form; replaces an existing file."""
    records = read_records(run)
    Path(out).unlink(missing_ok=True)
    with FlatMirror(out) as mirror:
        for record in records:
            mirror.write(record)
    return Path(out)
