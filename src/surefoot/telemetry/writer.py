"""One line per record, whole or not at all: what a run writes down so that a crash, a NaN or a restart stays visible."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, Unpack

import msgspec
import numpy as np

from surefoot.errors import Diverged, TelemetryError
from surefoot.telemetry import schema
from surefoot.telemetry.files import rotation
from surefoot.telemetry.files.json_numbers import finite, plain, plain_json, spelled
from surefoot.telemetry.files.line_file import LineFile, NoFile
from surefoot.telemetry.files.merge_updates import MetricSource, NewRows, PendingUpdate, Rows
from surefoot.telemetry.files.truncate import truncate_after
from surefoot.telemetry.schema import VERSION, EndReason, Episodes, HeaderFields, HeaderRecord, Record, Severity
from surefoot.telemetry.update_queue import UpdateQueue

__all__ = ["Mirror", "Recorder", "truncate_after"]


class Mirror(Protocol):
    """Somewhere else that every record goes too, such as TensorBoard."""

    def write(self, record: Record) -> None:
        """Take one record, as it was written."""
        ...

    def close(self) -> None:
        """Write out what is held back."""
        ...


class Recorder:
    """Writes a run's record; the only one who does, by an advisory lock.

    Every line is one `write` to a file opened for appending, so a killed process leaves whole lines; the disk is
    synchronised every `sync_seconds`, in a thread, and by `sync`, which waits. Above `updates_per_second` (or a fifth of
    it, where lines are expensive) one line stands for several updates, after the first `early` ones, so that a run of a
    second can be examined too: call `sync` before a checkpoint counts, then the
    record reaches at least as far as it.
    Of the minibatches it is told, it keeps the share `minibatch_rate`: none unless asked. Without a `path` nothing is
    written, and only the mirrors hear of it.
    Taking up an old record goes on with its `seq`; a torn last line is cut off and reported.
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
        self.run = run
        self._mirrors = mirrors
        self._rotate_bytes = rotate_bytes
        self._sync_seconds = sync_seconds
        self._queue = UpdateQueue(run, updates_per_second=updates_per_second, early=early)
        self._episodes_per_second = episodes_per_second
        self.minibatch_rate = minibatch_rate
        self._minibatches, self._minibatches_kept, self._minibatches_dropped = 0, 0, 0
        self._clock, self._stopwatch = clock, stopwatch
        self._encode = msgspec.json.Encoder(enc_hook=plain).encode
        self._header: HeaderRecord | None = None
        self._episode_second, self._episodes_in_it, self._dropped = 0, 0, 0
        self._synced_at = clock()
        self.path = None if path is None else rotation.live_file(Path(path))
        """Where the record is; None if it is switched off."""
        self._file = NoFile() if self.path is None else LineFile(self.path)
        last, torn = self._file.last, self._file.torn_bytes
        self.env_steps, self.updates, self._seq = (last.env_steps, last.updates, last.seq) if last else (0, 0, 0)
        if torn:
            self.event("torn_tail", f"the last line was torn and cut off ({torn} bytes)", {"bytes": torn})

    def header(self, *, env: str, seed: int, config: Mapping[str, Any], **fields: Unpack[HeaderFields]) -> None:
        """Begin a session: once after every opening, before anything else."""
        bad: dict[str, str] = {}
        common = self._begin()
        # Copies: what the caller changes later must not change the header of the next part.
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
        epochs: Rows | Callable[[], NewRows] = (),
        seconds: Mapping[str, float] | None = None,
        episodes: Episodes | None = None,
        stopped_early: bool = False,
        rolled_back: bool = False,
        skipped_reason: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """Update number `updates` is finished; `m` are its numbers. May wait a moment to share a line with the next.

        They are looked at when the line is due: do not change them afterwards, or give functions that are asked then.
        Epochs are only asked for where the update has a line of its own.
        """
        self.env_steps, self.updates = env_steps, updates
        now = self._clock()
        self._queue.add(
            PendingUpdate(
                now,
                env_steps,
                updates,
                m,
                epochs,
                seconds or {},
                episodes,
                self._dropped,
                stopped_early,
                rolled_back,
                skipped_reason,
                labels or {},
            )
        )
        self._dropped = 0
        if self._queue.is_due(now):
            self._flush()

    def defer(self, tell: Callable[[], None]) -> None:
        """An update is finished, of which `tell` will tell this recorder when a line is due, or anything else is written.

        Where updates come faster than lines, each costs next to nothing until then. What is told is dated then.
        """
        self._queue.defer(tell)
        if self._queue.is_due(self._clock()):
            self._flush()

    def episode(
        self, *, return_: float, length: int, env: int, env_steps: int, terminated: bool, success: bool | None = None
    ) -> None:
        """An episode ended at `env_steps`, on the way to the next update. Those above the rate are only counted."""
        now = self._clock()
        if int(now) != self._episode_second:
            self._episode_second, self._episodes_in_it = int(now), 0
        self._episodes_in_it += 1
        if self._episodes_in_it > self._episodes_per_second:
            self._dropped += 1
            return
        known = math.isfinite(return_)
        # Updates that wait to share a line go on waiting: `sync` puts them before any checkpoint.
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
        """How many of the episodes that ended just now may have a line."""
        now = int(self._clock())
        return self._episodes_per_second - (self._episodes_in_it if now == self._episode_second else 0)

    def drop_episodes(self, count: int) -> None:
        """So many episodes ended besides, too fast to have a line each."""
        self._dropped += count

    def minibatch(self, *, epoch: int, minibatch: int, m: MetricSource) -> None:
        """A gradient step on the way to the next update; evenly spaced ones are kept, the others counted."""
        self._minibatches += 1
        if self._minibatches * self.minibatch_rate < self._minibatches_kept + 1:
            self._minibatches_dropped += 1
            return
        bad: dict[str, str] = {}
        numbers = dict(zip(*m(), strict=True)) if callable(m) else m
        self._minibatches_kept += 1
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
        """The current policy played these episodes to be measured."""
        if len(returns) == 0:
            raise TelemetryError("an evaluation needs at least one episode; returns is empty")
        told = [bool(s) for s in successes if s is not None]
        bad: dict[str, str] = {}
        sums = np.asarray(returns, np.float64)
        with np.errstate(invalid="ignore"):  # inf - inf: the answer, NaN, is written down as such
            numbers = {"mean": sums.mean(), "std": sums.std(), "min": sums.min(), "max": sums.max()}
        stats: dict[str, Any] = finite({name: float(x) for name, x in numbers.items()}, "return", bad)
        each = finite({str(i): float(r) for i, r in enumerate(returns)}, "returns", bad)
        self._write(
            schema.EvaluationRecord(
                **self._begin(),
                **{f"return_{name}": x for name, x in stats.items()},
                nonfinite=bad,
                episodes=len(returns),
                length_mean=float(np.mean(lengths)),
                returns=list(each.values()),
                lengths=[int(n) for n in lengths],
                success_rate=sum(told) / len(told) if told else None,
                checkpoint=checkpoint,
                deterministic=deterministic,
            )
        )

    def event(self, name: str, message: str = "", data: Mapping[str, Any] | None = None) -> None:
        """Something worth knowing happened."""
        bad: dict[str, str] = {}
        facts = plain_json(data or {}, "data", bad)
        self._write(schema.EventRecord(**self._begin(), nonfinite=bad, name=name, message=message, data=facts))

    def finding(
        self,
        *,
        rule: str,
        severity: Severity,
        title: str,
        evidence: Mapping[str, float | None] | None = None,
        patch: Mapping[str, Any] | None = None,
        **others: Any,
    ) -> None:
        """Something is wrong with the run, or no longer; on its way to the disk at once. `FindingRecord` has the `others`."""
        bad: dict[str, str] = {}
        self._write(
            schema.FindingRecord(
                **self._begin(),
                nonfinite=bad,
                rule=rule,
                severity=severity,
                title=title,
                evidence=finite(evidence or {}, "evidence", bad),
                patch=plain_json(patch or {}, "patch", bad),
                **others,
            )
        )
        self.begin_sync()

    def end(self, reason: EndReason, message: str = "") -> None:
        """The session is over."""
        self._write(schema.EndRecord(**self._begin(), reason=reason, message=message))
        self.sync()

    def begin_sync(self) -> None:
        """Write down what waits and begin to push it to the disk; `sync` waits until it is there."""
        self._flush()
        self._file.begin_sync()
        self._synced_at = self._clock()

    def sync(self) -> None:
        """Write down what waits and come back when all is on the disk itself."""
        self._flush()
        self._file.sync()
        self._synced_at = self._clock()

    def close(self, reason: EndReason | None = None, message: str = "") -> None:
        """Say why it ends (if `reason` is given), let go of the file. A second close does nothing."""
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
        """Write the updates that wait; return what every record says."""
        self._flush()
        return self._common(self._clock())

    def _flush(self) -> None:
        """Write the updates that wait, as one line."""
        begin = self._stopwatch()
        if (record := self._queue.take()) is not None:
            self._write(record)
            self._queue.line_seconds = self._stopwatch() - begin

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
