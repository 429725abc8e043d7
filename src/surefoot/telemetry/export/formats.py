"""Export of a record to other formats: TensorBoard, SB3's progress.csv, Monitor files, Parquet."""

from __future__ import annotations

import csv
import json
from importlib import import_module
from pathlib import Path
from typing import Any

from surefoot.errors import TelemetryError
from surefoot.telemetry.export.parquet import write_parquet
from surefoot.telemetry.reader import load_curves, read_records
from surefoot.telemetry.schema import METRICS, EpisodeRecord, EvaluationRecord, HeaderRecord, Record, UpdateRecord

# Our name: SB3's tag, then CleanRL's if it has one.
_EPISODE_TAGS = {
    "return_mean": ("rollout/ep_rew_mean", "charts/episodic_return"),
    "length_mean": ("rollout/ep_len_mean", "charts/episodic_length"),
    "success_rate": ("rollout/success_rate",),
}
_EVAL_TAGS = {
    "return_mean": ("eval/mean_reward", "eval/episodic_return"),
    "return_std": ("eval/std_reward",),
    "length_mean": ("eval/mean_ep_length", "eval/episodic_length"),
    "success_rate": ("eval/success_rate",),
}


class Tags:
    """Convert records into {tag: number} with SB3's and CleanRL's names; other metrics are `surefoot/<name>`.

    Args:
        cleanrl: Include CleanRL's names.
    """

    def __init__(self, *, cleanrl: bool = True) -> None:
        self._cleanrl = cleanrl
        self._last: tuple[float, int] | None = None
        self._start: float | None = None

    def of(self, record: Record) -> dict[str, float]:
        """Return the tags of an update or an evaluation; an empty dict for other kinds."""
        match record:
            case HeaderRecord():
                self._last = (record.t, record.env_steps)
                self._start = self._start or record.t
                return {}
            case UpdateRecord():
                return self._update(record) | self._named(record.episodes, _EPISODE_TAGS)
            case EvaluationRecord():
                return self._named(record, _EVAL_TAGS)
            case _:
                return {}

    def _update(self, update: UpdateRecord) -> dict[str, float]:
        tags: dict[str, float] = {}
        for name, x in update.m.items():
            if x is None:
                continue
            metric = METRICS.get(name)
            aliases = [metric.sb3, metric.cleanrl if self._cleanrl else None] if metric else []
            known = {alias.tag: x * alias.scale for alias in aliases if alias}
            tags |= known or {f"surefoot/{name}": x}
        tags |= {"time/iterations": update.updates, "time/total_timesteps": update.env_steps}
        if self._start is not None:
            tags["time/time_elapsed"] = update.t - self._start
        if self._last and update.t > self._last[0]:
            speed = (update.env_steps - self._last[1]) / (update.t - self._last[0])
            tags |= {"time/fps": speed} | ({"charts/SPS": speed} if self._cleanrl else {})
        self._last = (update.t, update.env_steps)
        return tags

    def _named(self, source: object, table: dict[str, tuple[str, ...]]) -> dict[str, float]:
        known = {name: x for name in table if (x := getattr(source, name, None)) is not None}
        return {tag: x for name, x in known.items() for tag in (table[name] if self._cleanrl else table[name][:1])}


class TensorBoardMirror:
    """A `Mirror` that writes every update and evaluation as scalars over env steps. Needs tensorboard, not torch.

    Args:
        log_dir: Directory of the event files.
        purge_step: Hide what an earlier session wrote from this env step on; pass it when a run is resumed.
    """

    def __init__(self, log_dir: Path | str, *, purge_step: int | None = None) -> None:
        try:  # by name: the generated protobuf modules have no types to import
            events: Any = import_module("tensorboard.compat.proto.event_pb2")
            summaries: Any = import_module("tensorboard.compat.proto.summary_pb2")
            files: Any = import_module("tensorboard.summary.writer.event_file_writer")
        except ImportError as error:
            raise TelemetryError('TensorBoard is not installed: pip install "surefoot[tensorboard]"') from error
        self._event, self._summary = events.Event, summaries.Summary
        self._tags = Tags()
        self._writer = files.EventFileWriter(str(log_dir))
        if purge_step is not None:
            start = events.SessionLog(status=events.SessionLog.START)
            self._writer.add_event(events.Event(step=purge_step, session_log=start))

    def write(self, record: Record) -> None:
        """Write the scalars of one record; kinds without scalars are ignored."""
        tags = self._tags.of(record)
        if tags:
            values = [self._summary.Value(tag=tag, simple_value=x) for tag, x in tags.items()]
            event = self._event(wall_time=record.t, step=record.env_steps, summary=self._summary(value=values))
            self._writer.add_event(event)

    def close(self) -> None:
        """Write out what is buffered."""
        self._writer.close()


def to_tensorboard(run: Path | str, out: Path | str) -> Path:
    """Write a record as TensorBoard events; return `out`.

    Args:
        run: Run directory or record file.
        out: Directory of the event files.
    """
    records = read_records(run)
    mirror = TensorBoardMirror(out)
    for record in records:
        mirror.write(record)
    mirror.close()
    return Path(out)


def to_csv(run: Path | str, out: Path | str) -> Path:
    """Write SB3's progress.csv, one row per update; an evaluation is added to the row before it. Return `out`.

    Args:
        run: Run directory or record file.
        out: The CSV file.
    """
    rows: list[dict[str, float]] = []
    tags = Tags(cleanrl=False)
    for record in read_records(run):
        row = tags.of(record)
        if isinstance(record, EvaluationRecord) and rows:
            rows[-1] |= row
        elif row:
            rows.append(row)
    names = sorted({name for row in rows for name in row})
    with Path(out).open("w", newline="") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return Path(out)


def to_parquet(run: Path | str, out: Path | str) -> Path:
    """Write every number of every update as a column with our names; NaN where a line has none. Return `out`.

    Args:
        run: Run directory or record file.
        out: The Parquet file.
    """
    table = load_curves(run).updates
    clocks = {"env_steps": table.env_steps, "updates": table.updates, "t": table.t, "elapsed": table.elapsed}
    return write_parquet(out, clocks | table.columns)


def to_monitor_csv(run: Path | str, out: Path | str) -> Path:
    """Write a Monitor file: `#{json}`, then `r,l,t` per recorded training episode, t in seconds. Return `out`.

    Episodes above the recorder's rate are not in the record and so not in this file.

    Args:
        run: Run directory or record file.
        out: The Monitor file.
    """
    start, env = None, "unknown"
    rows: list[tuple[float | None, int, float]] = []
    for record in read_records(run):
        start = record.t if start is None else start
        if isinstance(record, HeaderRecord):
            env = record.env
        elif isinstance(record, EpisodeRecord):
            rows.append((record.return_, record.length, round(record.t - start, 6)))
    head = json.dumps({"t_start": start, "env_id": env})
    with Path(out).open("w", newline="") as file:
        file.write(f"#{head}\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("r", "l", "t"))
        writer.writerows(("nan" if r is None else r, length, t) for r, length, t in rows)
    return Path(out)
