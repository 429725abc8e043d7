"""The flat record of telemetry 1.1: one JSON object per epoch, every number a float."""

from __future__ import annotations

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
    """A `Mirror` that writes flat records beside the record; appends to an existing file."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._offset = _last_offset(self.path) + 1
        self._file = self.path.open("ab", buffering=0)

    def write(self, record: Record) -> None:
        """Append the epochs of an update, one `write` per line. Other kinds of records have no flat form."""
        if not isinstance(record, UpdateRecord):
            return
        for line in flat_lines(record, offset=self._offset):
            self._file.write(msgspec.json.encode(line) + b"\n")
            self._offset += 1

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _last_offset(path: Path) -> int:
    last = -1
    if not path.exists():
        return last
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            item = read_line(path.name, number, line) if line.strip() else None
            if isinstance(item, LineProblem):
                raise TelemetryError(f"{item}; --ppo-log only appends to a log without errors: give a new file")
            if isinstance(item, UpdateRecord):
                last = max(last, int(item.m.get("log_stream_offset") or 0))
    return last


def to_flat(run: Path | str, out: Path | str) -> Path:
    """Write the record of a run in the flat form; replaces an existing file."""
    records = read_records(run)
    Path(out).unlink(missing_ok=True)
    with FlatMirror(out) as mirror:
        for record in records:
            mirror.write(record)
    return Path(out)
