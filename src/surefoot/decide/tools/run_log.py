"""Log of tool runs with feedback and rewards; a run is on disk before it is acknowledged."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from surefoot.data.journal import Entry
from surefoot.decide.core.record import DecisionRecord
from surefoot.decide.core.store import KIND, JournalStore, record_in
from surefoot.decide.rewards import Feedback, Reward, RewardConfig, reward_of
from surefoot.decide.tools.run import ToolRun, from_earlier
from surefoot.errors import ConfigError, RecordingError

FILE = "reflections.sqlite"
"""Name of the file in an agent's directory, unchanged since the first release."""
_EARLIER = "spacetime"
"""Key of a run in files of the first release, where the decision was part of the run's JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRun:
    """A run and its reward."""

    run: ToolRun
    feedback: dict[str, Any]
    reward: float
    """0 … 1."""
    raw_reward: float
    parts: dict[str, float]
    said_by: str
    success: bool
    timestamp: str


class RunLog:
    """Log of the last `capacity` runs.

    Args:
        path: A directory or a .sqlite file; None: in memory.
        capacity: Maximum number of runs; the oldest are deleted first.
        grace: Seconds within which later feedback replaces the reward. A run is learned from after this time; later
            feedback is stored but has no effect.
        window: Number of runs for statistics.
        success_threshold: Reward (0 … 1) at or above which a run counts as a success.
        reward_config: Weights of the reward.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        capacity: int = 100_000,
        grace: float = 0.0,
        window: int = 100,
        success_threshold: float = 0.6,
        reward_config: RewardConfig | None = None,
    ) -> None:
        if capacity < 1 or window < 1:
            raise ConfigError(f"capacity is {capacity} and window {window}; both must be at least 1")
        self.capacity, self.grace, self.window, self.success_threshold = capacity, grace, window, success_threshold
        self.reward_config = reward_config or RewardConfig()
        self.store = JournalStore(":memory:" if path is None else _file(Path(path)), grace=grace, decode=decision_in)
        self.journal = self.store.journal
        self.late = self.journal.count("late")
        """Number of feedbacks that came after the grace time."""
        self._count = self.journal.count(KIND)

    def __len__(self) -> int:
        return self._count

    def __contains__(self, id: str) -> bool:
        return bool(id) and self.journal.has(KIND, id)

    def reward(self, run: ToolRun, feedback: Feedback | None = None, reward: float | None = None) -> Reward:
        """Return `reward` if it is passed, else the reward computed from feedback and the run."""
        if reward is None:
            return reward_of(run.facts(), feedback, self.reward_config)
        low, high = self.reward_config.min_reward, self.reward_config.max_reward
        if not low <= reward <= high:
            raise ConfigError(f"reward is {reward}; it must be between {low:g} and {high:g}")
        return Reward(value=reward, parts={"given": reward}, said_by="caller")

    def put(self, run: ToolRun, feedback: Feedback | None = None, reward: float | None = None) -> Reward:
        """Store a run with its reward, on disk when this returns. The same run again counts as later feedback."""
        computed = self.reward(run, feedback, reward)
        id = run.id or f"{run.created_at.timestamp():.6f}-{len(self)}"
        known = self.journal.get(KIND, id) if run.id else None
        if known is not None and time.time() - known.t > self.grace:
            self.late += 1
            body = {"episode": id, "feedback": _plain(feedback)}
            self.journal.put(Entry(kind="late", id=f"{id}-{self.late}", body=body))
            body = known.body
            return Reward(value=float(body["raw_reward"]), parts=dict(body["parts"]), said_by=str(body["said_by"]))
        values = run.to_json()
        # Stored separately, as arrays.
        del values["decision"]
        details = {
            "run": values,
            "feedback": _plain(feedback),
            "raw_reward": computed.value,
            "parts": computed.parts,
            "said_by": computed.said_by,
            "success": computed.unit >= self.success_threshold,
            "timestamp": datetime.now(UTC).isoformat(),
        }
        self.store.put(id, run.decision, computed.unit, details, tag=run.tool, number=computed.value)
        self._count += known is None
        # Trim only at 10 % above the capacity: one deletion then covers many runs.
        if self._count > self.capacity + max(1, self.capacity // 10) or (self._count > self.capacity < 100):
            self._trim()
        return computed

    def recent(self, n: int = 10, *, decisions: bool = True) -> list[LoggedRun]:
        """Return the last n runs, oldest first; reading them without decisions takes half the time."""
        return [logged_run(entry, decision=decisions) for entry in self.journal.latest(KIND, min(n, self.capacity))]

    def delete(self, positions: Iterable[int]) -> int:
        """Delete runs by their positions in the journal; return the number deleted."""
        deleted = self.journal.delete(KIND, positions)
        self._count = self.journal.count(KIND)
        return deleted

    def export(self, path: str | Path) -> int:
        """Write every run as one line of NDJSON; return the number of runs."""
        lines = list[bytes]()
        for entry in self.journal.scan(KIND):
            decision = decision_in(entry)
            body = entry.body | {"decision": None if decision is None else decision.to_json()}
            lines.append(msgspec.json.encode({"id": entry.id, "t": entry.t, **body}) + b"\n")
        Path(path).write_bytes(b"".join(lines))
        return len(lines)

    def import_(self, path: str | Path) -> int:
        """Import a file that `export` wrote, all or nothing; existing runs are replaced. Return the number of runs."""
        entries = list[Entry]()
        for number, line in enumerate(Path(path).read_bytes().splitlines(), 1):
            try:
                entries.append(_imported(msgspec.json.decode(line)))
            except (msgspec.DecodeError, KeyError, TypeError, ValueError, RecordingError) as error:
                raise RecordingError(f"line {number} of {path} is not a run: {error}; nothing was imported") from error
        self.journal.put(*entries)
        self._trim()
        return len(entries)

    def clear(self) -> None:
        self.journal.clear(KIND)
        self._count = 0

    def close(self) -> None:
        self.journal.close()

    def _trim(self) -> None:
        self.journal.keep_latest(KIND, self.capacity)
        self._count = self.journal.count(KIND)


def logged_run(entry: Entry, *, decision: bool = True) -> LoggedRun:
    """Return the run of a journal entry, of this release or of the first."""
    body = entry.body
    if _EARLIER in body:
        run = from_earlier({**body[_EARLIER], "id": entry.id})
    else:
        run = ToolRun.from_json(body["run"], record_in(entry) if decision else None)
    return LoggedRun(
        run=run,
        **{
            name: body[name]
            for name in ("feedback", "reward", "raw_reward", "parts", "said_by", "success", "timestamp")
        },
    )


def run_json(entry: Entry) -> dict[str, Any]:
    """Return the run of a journal entry as JSON values, without creating a `ToolRun`."""
    return entry.body["run"] if _EARLIER not in entry.body else logged_run(entry).run.to_json()


def decision_in(entry: Entry) -> DecisionRecord | None:
    """Return the decision in a journal entry, of this release or of the first."""
    return (
        from_earlier({**entry.body[_EARLIER], "id": entry.id}).decision if _EARLIER in entry.body else record_in(entry)
    )


def _imported(body: dict[str, Any]) -> Entry:
    id, t = body.pop("id"), body.pop("t")
    raw = None
    if _EARLIER in body:
        tool = from_earlier({**body[_EARLIER], "id": id}).tool
    else:
        tool = body["run"]["tool"]
        ToolRun.from_json(body["run"])
        if body["decision"] is not None:
            body["decision"], raw = DecisionRecord.from_json(body["decision"], id=id).pack()
    return Entry(kind=KIND, id=id, tag=tool, number=float(body["raw_reward"]), body=body, raw=raw, t=t)


def _file(path: Path) -> Path:
    return path if path.suffix in (".sqlite", ".db") else path / FILE


def _plain(value: Any) -> Any:
    """Return feedback as JSON values: arrays as lists, numpy's numbers as Python's."""
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return {str(name): each if each is None else _plain(each) for name, each in value.items()}
    if isinstance(value, np.generic):
        return value.item()
    is_list = isinstance(value, Sequence | np.ndarray | set) and not isinstance(value, str)
    return [_plain(each) for each in value] if is_list else value
