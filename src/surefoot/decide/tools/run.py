"""The record of one answered query: the tool, its response, and the trace of the stages."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np

from surefoot.decide.core.record import DecisionRecord
from surefoot.decide.rewards import RewardFacts
from surefoot.errors import RecordingError
from surefoot.learn.checkpoint.atomic_files import REAL_FS, replace_file


def now() -> datetime:
    """Return the current time with the local time zone."""
    return datetime.now().astimezone()


@dataclass(slots=True, kw_only=True)
class RunTrace:
    """Timing, context and errors of the stages of a run."""

    started_at: datetime = field(default_factory=now)
    ended_at: datetime | None = None
    duration_ms: float = 0.0
    stage_ms: dict[str, float] = field(default_factory=dict[str, float])
    cues: list[str] = field(default_factory=list[str])
    scales: list[int] = field(default_factory=list[int])
    context_ids: list[str] = field(default_factory=list[str])
    """Ids of the retrieved passages, best first."""
    retrieval: str = "unknown"
    chooser: str = ""
    version: int = 0
    """Version of the policy that selected the tool."""
    tool_confidence: float = 0.0
    probabilities: dict[str, float] = field(default_factory=dict[str, float])
    errors: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    """stage, type, error."""
    warnings: list[str] = field(default_factory=list[str])


@dataclass(slots=True, kw_only=True)
class ToolRun:
    """An answered query. `confidence` is the success rate that the policy expected, 0 if the run failed."""

    query: str
    response: str
    tool: str
    confidence: float
    trace: RunTrace = field(default_factory=RunTrace)
    id: str = ""
    decision: DecisionRecord | None = field(default=None, compare=False)
    """The decision, needed for learning; None for errors and cached answers."""
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    sources: list[str] = field(default_factory=list[str])
    created_at: datetime = field(default_factory=now)
    quality: float | None = None
    comment: str | None = None

    def add_quality(self, score: float, comment: str | None = None) -> None:
        """Set a quality score from 0 to 1, and a comment."""
        if not 0.0 <= score <= 1.0:
            raise RecordingError(f"the quality score is {score}; it must be between 0 and 1")
        self.quality, self.comment = float(score), comment

    def facts(self) -> RewardFacts:
        """Return the measurements that a reward is computed from."""
        return RewardFacts(
            confidence=self.confidence,
            duration_ms=self.trace.duration_ms,
            quality=self.quality,
            errors=len(self.trace.errors),
            warnings=len(self.trace.warnings),
            sources=self.sources,
        )

    def to_json(self) -> dict[str, Any]:
        """Return JSON values only; `from_json` returns an equal record."""
        return to_json(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any], decision: DecisionRecord | None = None) -> Self:
        """Return the record that `to_json` wrote. Raise `RecordingError` for an unknown key."""
        values = {**data, "trace": from_json(RunTrace, data["trace"]), "decision": decision}
        if decision is None and (choice := data.get("decision")) is not None:
            values["decision"] = DecisionRecord.from_json(choice, id=data["id"])
        return from_json(cls, values)

    def save(self, path: str | Path) -> None:
        """Write the record as JSON, atomically."""
        replace_file(REAL_FS, Path(path), msgspec.json.format(msgspec.json.encode(self.to_json()), indent=2))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a record that `save` wrote."""
        return cls.from_json(read_json(path, "a tool run"))


def read_json(path: str | Path, what: str) -> dict[str, Any]:
    """Return the JSON object in a file; `what` names the content in the error."""
    try:
        return msgspec.json.decode(Path(path).read_bytes())
    except (OSError, msgspec.DecodeError) as error:
        raise RecordingError(f"{path} could not be read as {what}: {error}") from error


def to_json(value: Any) -> Any:
    """Return a record as JSON values. Raise `RecordingError` for a value that JSON cannot represent."""
    if isinstance(value, DecisionRecord):
        return value.to_json()
    if is_dataclass(value):
        return {entry.name: to_json(getattr(value, entry.name)) for entry in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | np.ndarray):
        return [to_json(each) for each in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, np.generic):
        return to_json(value.item())
    # JSON has no NaN and no infinity.
    if isinstance(value, float) and not math.isfinite(value):
        return {"$number": repr(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise RecordingError(f"a record cannot contain {value!r} ({type(value).__name__}); use JSON values")


def from_json(cls: Any, data: Mapping[str, Any]) -> Any:
    """Return a record of class `cls` from `to_json`'s values; other values are passed on unchanged."""
    known = _fields(cls)
    if unknown := data.keys() - known.keys():
        raise RecordingError(
            f"{sorted(unknown)[0]!r} is not a field of {cls.__name__}; it has {', '.join(sorted(known))}"
        )
    values = {name: _numbers(value) if isinstance(value, dict | list) else value for name, value in data.items()}
    for name, is_time in known.items():
        if is_time and values.get(name) is not None:
            values[name] = datetime.fromisoformat(values[name])
    return cls(**values)


@cache
def _fields(cls: Any) -> dict[str, bool]:
    """Return by field name whether it is a time."""
    return {entry.name: "datetime" in str(entry.type) for entry in fields(cls)}


def _numbers(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {"$number"}:
            return float(value["$number"])
        return {key: _numbers(each) for key, each in value.items()}
    return [_numbers(each) for each in value] if isinstance(value, list) else value


# Field names in files of the first release; fields that are not listed have the same name.
EARLIER_RUN = {
    "query_text": "query",
    "tool_used": "tool",
    "sources_used": "sources",
    "quality_score": "quality",
    "user_feedback": "comment",
}
EARLIER_TRACE = {
    "start_time": "started_at",
    "end_time": "ended_at",
    "stage_durations": "stage_ms",
    "motifs_detected": "cues",
    "embedding_scales_used": "scales",
    "threads_activated": "context_ids",
    "retrieval_mode": "retrieval",
    "policy_adapter": "chooser",
    "policy_version": "version",
    "tool_probabilities": "probabilities",
}
_DROPPED = ("context_summary", "context_shards_count", "tool_selected", "bandit_statistics", "analytical_metrics")


def from_earlier(data: Mapping[str, Any]) -> ToolRun:
    """Return a run from the JSON of the first release."""
    trace = _renamed(data["trace"], EARLIER_TRACE)
    values = _renamed(data, EARLIER_RUN) | {"trace": trace}
    choice = values.pop("decision")
    known = {"id": data["id"], "text": values["query"], "name": values["tool"], "confidence": trace["tool_confidence"]}
    decision = None if choice is None else DecisionRecord.from_json(choice, **known)
    metadata = {"depth" if k == "pattern_card" else k: v for k, v in data["metadata"].items()}
    return ToolRun.from_json({**values, "metadata": metadata}, decision)


def _renamed(data: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in data.items() if name not in _DROPPED}
