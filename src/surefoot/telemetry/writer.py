"""The recorder: one line per record, complete or not at all, so that a crash, a NaN or a restart stays visible."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, Self, Unpack

import msgspec

from surefoot.errors import Diverged, TelemetryError
from surefoot.telemetry import schema
from surefoot.telemetry.files import rotation
from surefoot.telemetry.files.json_numbers import evaluation_fields, finite, plain, plain_json, spelled
from surefoot.telemetry.files.line_file import LineFile, NoFile
from surefoot.telemetry.files.merge_updates import MetricSource, NewRows, PendingUpdate, Rows, UpdateQueue
from surefoot.telemetry.files.truncate import truncate_after
from surefoot.telemetry.schema import VERSION, EndReason, Episodes, HeaderFields, HeaderRecord, Record

__all__ = ["Mirror", "Recorder", "truncate_after"]


class Mirror(Protocol):
    """Another destination for every record, such as TensorBoard."""

    def write(self, record: Record) -> None:
        """Take one record, as it was written."""

    def close(self) -> None:
        """Write out what is buffered."""


class Recorder:
    """Write a run's record. An advisory lock makes it the only writer.

    Every line is one `write` to a file opened for appending, so a killed process leaves complete lines. Call `sync`
    before a checkpoint counts; then the record reaches at least as far as the checkpoint. Opening an existing record
    continues its `seq`; a torn last line is cut off and reported.

    Args:
        path: Run directory or record file. None writes no file; the mirrors still receive every record.
        run: Name of the run, a field of every line.
        mirrors: Other destinations for every record.
        rotate_bytes: Size at which the file is compressed into a part.
        sync_seconds: Seconds between two background synchronisations with the disk.
        updates_per_second: Above this rate (or a fifth of it, if lines are expensive) updates share a line.
        episodes_per_second: Episodes above this rate are only counted.
        minibatch_rate: Share of minibatches that get a line; 0 for none.
        early: The first `early` updates get a line each, so that a run of one second can be examined too.
        clock: Returns Unix time.
        stopwatch: Returns seconds, to measure what a line costs.
    """

    def __init__(
        self,
        path: Path | str | None,
        run: str,
        *,
        mirrors: Sequence[Mirror] = (),
        rotate_bytes: int = 64 << 20,
        sync_seconds: float = 5.0,
        updates_per_second: float = 10.0,
        episodes_per_second: int = 20,
        minibatch_rate: float = 0.0,
        early: int = 0,
        clock: Callable[[], float] = time.time,
        stopwatch: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.run, self._mirrors = run, mirrors
        self._rotate_bytes, self._sync_seconds = rotate_bytes, sync_seconds
        self._queue = UpdateQueue(run, updates_per_second=updates_per_second, early=early)
        self._episodes_per_second, self.minibatch_rate = episodes_per_second, minibatch_rate
        self._minibatches, self._minibatches_written, self._minibatches_dropped = 0, 0, 0
        self._clock, self._stopwatch, self._synced_at = clock, stopwatch, clock()
        self._encode = msgspec.json.Encoder(enc_hook=plain).encode
        self._header: HeaderRecord | None = None
        self._episode_second, self._episodes_in_it, self._dropped = 0, 0, 0
        self.path = None if path is None else rotation.live_file(Path(path))
        """The record file; None if it is switched off."""
        self._file = NoFile() if self.path is None else LineFile(self.path)
        last, torn = self._file.last, self._file.torn_bytes
        self.env_steps, self.updates, self._seq = (last.env_steps, last.updates, last.seq) if last else (0, 0, 0)
        if torn:
            self.event("torn_tail", f"the last line was torn and cut off ({torn} bytes)", {"bytes": torn})

    def header(self, *, env: str, seed: int, config: Mapping[str, Any], **fields: Unpack[HeaderFields]) -> None:
        """Begin a session: call once after opening, before anything else."""
        bad: dict[str, str] = {}
        common = self._begin()
        # Copies: a later change by the caller must not change the header of the next part.
        optional: dict[str, Any] = {n: list(x) if isinstance(x, tuple | list) else x for n, x in fields.items()}
        self._header = HeaderRecord(
            **common,
            nonfinite=bad,
            env=env,
            seed=seed,
            config=plain_json(config, "config", bad),
            session=f"{int(common['t'] * 1000):x}-{os.getpid():x}",
            **optional,
        )
        self._write(self._header)

    def update(
        self,
        *,
        env_steps: int,
        updates: int,
        m: MetricSource,
        stats: Mapping[str, float | None] | None = None,
        epochs: Rows | Callable[[], NewRows] = (),
        seconds: Mapping[str, float] | None = None,
        episodes: Episodes | None = None,
        stopped_early: bool = False,
        rolled_back: bool = False,
        skipped_reason: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """Record update number `updates`: the numbers `m`, and `stats` that only some updates have.

        It may wait a moment to share a line with the next. The numbers are read then: do not change them, or pass
        functions. Epochs are only read if the update has a line to itself.
        """
        self.env_steps, self.updates, now = env_steps, updates, self._clock()
        dropped, self._dropped = self._dropped, 0
        numbers = (now, env_steps, updates, m, epochs, seconds or {}, episodes, dropped, stopped_early, rolled_back)
        self._queue.add(PendingUpdate(*numbers, skipped_reason, labels or {}, stats or {}))
        if self._queue.is_due(now):
            self._flush()

    def defer(self, report: Callable[..., None], *args: Any) -> None:
        """Call `report(*args)`, which calls `update`, when a line is due or another record is written.

        Updates may come faster than lines. Do not change the arguments until then.
        """
        if self._queue.defer(self._clock(), report, args):
            self._flush()

    def episode(
        self, *, return_: float, length: int, env: int, env_steps: int, terminated: bool, success: bool | None = None
    ) -> None:
        """Record an episode that ended at `env_steps`. Episodes above the rate are only counted."""
        now = self._clock()
        if int(now) != self._episode_second:
            self._episode_second, self._episodes_in_it = int(now), 0
        self._episodes_in_it += 1
        if self._episodes_in_it > self._episodes_per_second:
            self._dropped += 1
            return
        known = math.isfinite(return_)
        # Updates that wait to share a line continue to wait: `sync` writes them before any checkpoint.
        self._write(
            schema.EpisodeRecord(
                **self._common(now, env_steps),
                nonfinite={} if known else {"return": spelled(return_)},
                return_=return_ if known else None,
                length=length,
                env=env,
                terminated=terminated,
                success=success,
            )
        )

    def room_for_episodes(self) -> int:
        """Return how many episodes may get a line in the current second."""
        now = int(self._clock())
        return self._episodes_per_second - (self._episodes_in_it if now == self._episode_second else 0)

    def drop_episodes(self, count: int) -> None:
        """Count episodes that ended too fast to get a line each."""
        self._dropped += count

    def minibatch(self, *, epoch: int, minibatch: int, m: MetricSource) -> None:
        """Record a gradient step; evenly spaced ones get a line, the others are counted."""
        self._minibatches += 1
        if self._minibatches * self.minibatch_rate < self._minibatches_written + 1:
            self._minibatches_dropped += 1
            return
        bad: dict[str, str] = {}
        numbers = dict(zip(*m(), strict=True)) if callable(m) else m
        self._minibatches_written += 1
        self._write(
            schema.MinibatchRecord(
                **self._common(self._clock()),
                nonfinite=bad,
                epoch=epoch,
                minibatch=minibatch,
                m=finite(numbers, "m", bad),
                sample_rate=self.minibatch_rate,
                dropped=self._minibatches_dropped,
            )
        )
        self._minibatches_dropped = 0

    def eval(
        self,
        *,
        returns: Sequence[float],
        lengths: Sequence[int],
        successes: Sequence[bool | None] = (),
        checkpoint: str | None = None,
        deterministic: bool | None = None,
    ) -> None:
        """Record an evaluation of the current policy over these episodes."""
        if len(returns) == 0:
            raise TelemetryError("an evaluation needs at least one episode; returns is empty")
        numbers = evaluation_fields(returns, lengths, successes)
        common = self._begin() | {"checkpoint": checkpoint, "deterministic": deterministic}
        self._write(schema.EvaluationRecord(**common, **numbers))

    def event(self, name: str, message: str = "", data: Mapping[str, Any] | None = None) -> None:
        """Record a notable event."""
        bad: dict[str, str] = {}
        facts = plain_json(data or {}, "data", bad)
        self._write(schema.EventRecord(**self._begin(), nonfinite=bad, name=name, message=message, data=facts))

    def finding(self, **fields: Any) -> None:
        """Record a finding, open or resolved, and begin to synchronise; `fields` are those of `FindingRecord`."""
        bad: dict[str, str] = {}
        fields["evidence"] = finite(fields.get("evidence", {}), "evidence", bad)
        fields["patch"] = plain_json(fields.get("patch", {}), "patch", bad)
        self._write(schema.FindingRecord(**self._begin(), nonfinite=bad, **fields))
        self.begin_sync()

    def end(self, reason: EndReason, message: str = "") -> None:
        """Record the end of the session."""
        self._write(schema.EndRecord(**self._begin(), reason=reason, message=message))
        self.sync()

    def begin_sync(self) -> None:
        """Write what waits and start to synchronise the file with the disk; `sync` waits for it."""
        self._flush()
        self._file.begin_sync()
        self._synced_at = self._clock()

    def sync(self) -> None:
        """Write what waits and return when everything is on the disk."""
        self._flush()
        self._file.sync()
        self._synced_at = self._clock()

    def close(self, reason: EndReason | None = None, message: str = "") -> None:
        """Record the end if `reason` is set, and close the file. A second call does nothing."""
        if self._file.closed:
            return
        try:
            if reason:
                self.end(reason, message)
            else:
                self.sync()
        finally:
            self._file.close()
            for mirror in self._mirrors:
                mirror.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.close("finished")
        elif isinstance(error, KeyboardInterrupt):
            self.close("interrupted")
        else:
            self.close("diverged" if isinstance(error, Diverged) else "error", f"{type(error).__name__}: {error}")

    def _common(self, now: float, env_steps: int | None = None) -> dict[str, Any]:
        steps = self.env_steps if env_steps is None else env_steps
        return {"v": VERSION, "run": self.run, "seq": 0, "t": now, "env_steps": steps, "updates": self.updates}

    def _begin(self) -> dict[str, Any]:
        """Write the waiting updates; return the fields of every record."""
        self._flush()
        return self._common(self._clock())

    def _flush(self) -> None:
        """Write the waiting updates as one line."""
        begin = self._stopwatch()
        if (record := self._queue.take()) is not None:
            self._write(record)
            self._queue.line_took(self._stopwatch() - begin)

    def _write(self, record: Record) -> None:
        self._append(record)
        if self._file.size >= self._rotate_bytes:
            self._file.rotate()
            if self._header:
                self._append(msgspec.structs.replace(self._header, **self._common(record.t)))
        if not 0 <= record.t - self._synced_at < self._sync_seconds:
            self._file.begin_sync()
            self._synced_at = record.t

    def _append(self, record: Record) -> None:
        record.seq = self._seq + 1
        self._file.append(self._encode(record) + b"\n")
        self._seq += 1
        for mirror in self._mirrors:
            mirror.write(record)
