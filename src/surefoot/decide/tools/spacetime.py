"""Spacetime: the record of one woven query, from the text to the tool's answer, that saves and loads exactly."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np

from surefoot.decide.rewards import Facts
from surefoot.errors import RecordingError
from surefoot.learn.checkpoint.atomic_files import REAL_FS, replace_file

STAGES = (
    "pattern_selection",
    "feature_extraction",
    "retrieval",
    "convergence",
    "tool_execution",
    "spacetime_assembly",
)


@dataclass(slots=True, kw_only=True)
class WeavingTrace:
    """What happened on the way, stage by stage."""

    start_time: datetime = field(default_factory=lambda: datetime.now().astimezone())
    end_time: datetime | None = None
    duration_ms: float = 0.0
    stage_durations: dict[str, float] = field(default_factory=dict[str, float])
    motifs_detected: list[str] = field(default_factory=list[str])
    embedding_scales_used: list[int] = field(default_factory=list[int])
    threads_activated: list[str] = field(default_factory=list[str])
    context_shards_count: int = 0
    retrieval_mode: str = "unknown"
    policy_adapter: str = ""
    """Which chooser decided."""
    policy_version: int = 0
    tool_selected: str = ""
    tool_confidence: float = 0.0
    tool_probabilities: dict[str, float] = field(default_factory=dict[str, float])
    bandit_statistics: dict[str, Any] | None = None
    analytical_metrics: dict[str, Any] | None = None
    errors: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    """stage, type, error."""
    warnings: list[str] = field(default_factory=list[str])


@dataclass(slots=True, kw_only=True)
class Spacetime:
    """A woven query. Confidence is the success rate the policy expected, 0 if the weave failed."""

    query_text: str
    response: str
    tool_used: str
    confidence: float
    trace: WeavingTrace = field(default_factory=WeavingTrace)
    id: str = ""
    decision: dict[str, Any] | None = None
    """What learning needs of the choice; None for answers nobody chose (errors, other systems' records)."""
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    context_summary: str | None = None
    sources_used: list[str] = field(default_factory=list[str])
    created_at: datetime = field(default_factory=lambda: datetime.now().astimezone())
    quality_score: float | None = None
    user_feedback: str | None = None

    def add_quality_score(self, score: float, feedback: str | None = None) -> None:
        """A score from 0 to 1, and words if there were any."""
        if not 0.0 <= score <= 1.0:
            raise RecordingError(f"quality_score is {score}; it must lie between 0 and 1")
        self.quality_score, self.user_feedback = float(score), feedback

    def facts(self) -> Facts:
        """What a reward is worked out from."""
        return Facts(
            confidence=self.confidence,
            duration_ms=self.trace.duration_ms,
            quality=self.quality_score,
            errors=len(self.trace.errors),
            warnings=len(self.trace.warnings),
            sources=self.sources_used,
        )

    def observation(self) -> dict[str, Any]:
        """What was noticed about the query, by the seed's names."""
        trace = self.trace
        return {
            "motifs_detected": list(trace.motifs_detected),
            "embedding_scales_used": list(trace.embedding_scales_used),
            "context_shards_count": trace.context_shards_count,
            "retrieval_mode": trace.retrieval_mode,
            "threads_activated_count": len(trace.threads_activated),
        }

    def to_dict(self) -> dict[str, Any]:
        """JSON values only; `from_dict` gives an equal record."""
        return _plain(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """What `to_dict` gave. Unknown keys are refused by name."""
        return _rebuild(cls, data)

    def save(self, path: str | Path) -> None:
        """Write it as JSON: the file is there whole or not at all."""
        replace_file(REAL_FS, Path(path), msgspec.json.format(msgspec.json.encode(self.to_dict()), indent=2))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        try:
            data = msgspec.json.decode(Path(path).read_bytes())
        except (OSError, msgspec.DecodeError) as error:
            raise RecordingError(f"{path} cannot be read as a Spacetime: {error}") from error
        return cls.from_dict(data)

    def copy(self) -> Self:
        """An equal record that shares nothing with this one."""
        return self.from_dict(self.to_dict())

    def summarize(self) -> dict[str, Any]:
        """One line's worth."""
        return {
            "query": self.query_text[:100],
            "tool": self.tool_used,
            "confidence": self.confidence,
            "duration_ms": self.trace.duration_ms,
            "threads_activated": len(self.trace.threads_activated),
            "motifs_detected": len(self.trace.motifs_detected),
            "quality_score": "N/A" if self.quality_score is None else self.quality_score,
            "timestamp": self.created_at.isoformat(),
        }

    def get_reflection_signal(self) -> dict[str, Any]:
        """What a look back starts from; success is confidence and, if there is one, quality of at least 0.7."""
        good = self.confidence >= 0.7 and (self.quality_score is None or self.quality_score >= 0.7)
        trace = self.trace
        return {
            "success": good,
            "tool_selected": self.tool_used,
            "confidence": self.confidence,
            "quality_score": self.quality_score,
            "duration_ms": trace.duration_ms,
            "stage_durations": dict(trace.stage_durations),
            "motifs_pattern": list(trace.motifs_detected),
            "retrieval_mode": trace.retrieval_mode,
            "threads_activated_count": len(trace.threads_activated),
            "errors": bool(trace.errors),
            "warnings": bool(trace.warnings),
            "bandit_statistics": trace.bandit_statistics,
        }


class FabricCollection:
    """Several records: saved and loaded together, and what they come to."""

    def __init__(self, spacetimes: list[Spacetime] | None = None) -> None:
        self.spacetimes = list(spacetimes or [])

    def add(self, spacetime: Spacetime) -> None:
        self.spacetimes.append(spacetime)

    def __len__(self) -> int:
        return len(self.spacetimes)

    def __iter__(self) -> Iterator[Spacetime]:
        return iter(self.spacetimes)

    def save_all(self, directory: str | Path) -> list[Path]:
        """spacetime_0000_20260101_120000.json and so on."""
        root = Path(directory)
        root.mkdir(parents=True, exist_ok=True)
        paths = [
            root / f"spacetime_{i:04d}_{each.created_at:%Y%m%d_%H%M%S}.json" for i, each in enumerate(self.spacetimes)
        ]
        for path, each in zip(paths, self.spacetimes, strict=True):
            each.save(path)
        return paths

    @classmethod
    def load_all(cls, directory: str | Path) -> Self:
        return cls([Spacetime.load(path) for path in sorted(Path(directory).glob("spacetime_*.json"))])

    def filter_by_tool(self, tool: str) -> FabricCollection:
        return FabricCollection([each for each in self if each.tool_used == tool])

    def filter_by_quality(self, least: float) -> FabricCollection:
        return FabricCollection(
            [each for each in self if each.quality_score is not None and each.quality_score >= least]
        )

    def get_reflection_corpus(self) -> list[dict[str, Any]]:
        return [each.get_reflection_signal() for each in self]

    def get_statistics(self) -> dict[str, Any]:
        """Count, tools, mean confidence, quality and duration, success rate, first and last moment."""
        if not self.spacetimes:
            return {"count": 0}
        tools: dict[str, int] = {}
        for each in self:
            tools[each.tool_used] = tools.get(each.tool_used, 0) + 1
        scores = [each.quality_score for each in self if each.quality_score is not None]
        moments = sorted(each.created_at for each in self)
        return {
            "count": len(self),
            "tool_distribution": tools,
            "avg_confidence": float(np.mean([each.confidence for each in self])),
            "avg_quality": float(np.mean(scores)) if scores else None,
            "avg_duration_ms": float(np.mean([each.trace.duration_ms for each in self])),
            "success_rate": float(np.mean([each.confidence >= 0.7 for each in self])),
            "date_range": {"start": moments[0].isoformat(), "end": moments[-1].isoformat()},
        }


def _plain(value: Any) -> Any:
    """JSON values; a number JSON cannot hold is refused by its value."""
    if isinstance(value, Spacetime | WeavingTrace):
        return {entry.name: _plain(getattr(value, entry.name)) for entry in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | np.ndarray):
        return [_plain(each) for each in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return {"$number": repr(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise RecordingError(f"a Spacetime cannot hold {value!r} ({type(value).__name__}); use JSON values")


def _rebuild(cls: Any, data: Mapping[str, Any]) -> Any:
    known = {entry.name for entry in fields(cls)}
    if strange := set(data) - known:
        raise RecordingError(f"{sorted(strange)[0]!r} is no field of {cls.__name__}; it has {', '.join(sorted(known))}")
    values: dict[str, Any] = {}
    for name, value in data.items():
        if name == "trace":
            values[name] = _rebuild(WeavingTrace, value)
        elif name in ("start_time", "end_time", "created_at") and value is not None:
            values[name] = datetime.fromisoformat(value)
        else:
            values[name] = _numbers(value)
    return cls(**values)


def _numbers(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"$number"}:
            return float(value["$number"])
        return {key: _numbers(each) for key, each in value.items()}
    return [_numbers(each) for each in value] if isinstance(value, list) else value
