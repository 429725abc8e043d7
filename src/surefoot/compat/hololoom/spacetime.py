"""Spacetime and WeavingTrace: a `ToolRun` under HoloLoom's names, and collections of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np

from surefoot.decide.core.record import DecisionRecord
from surefoot.decide.tools.run import (
    EARLIER_RUN,
    EARLIER_TRACE,
    RunTrace,
    ToolRun,
    from_json,
    now,
    read_json,
    to_json,
)
from surefoot.learn.checkpoint.atomic_files import REAL_FS, replace_file

# Key of a run's metadata for the fields that a run does not have.
_EXTRAS = "hololoom"
_TRACE_EXTRAS = ("context_shards_count", "tool_selected", "bandit_statistics", "analytical_metrics")


@dataclass(slots=True, kw_only=True)
class WeavingTrace:
    """The stages of an answer."""

    start_time: datetime = field(default_factory=now)
    end_time: datetime | None = None
    duration_ms: float = 0.0
    stage_durations: dict[str, float] = field(default_factory=dict[str, float])
    motifs_detected: list[str] = field(default_factory=list[str])
    embedding_scales_used: list[int] = field(default_factory=list[int])
    threads_activated: list[str] = field(default_factory=list[str])
    context_shards_count: int = 0
    retrieval_mode: str = "unknown"
    policy_adapter: str = ""
    policy_version: int = 0
    tool_selected: str = ""
    tool_confidence: float = 0.0
    tool_probabilities: dict[str, float] = field(default_factory=dict[str, float])
    bandit_statistics: dict[str, Any] | None = None
    analytical_metrics: dict[str, Any] | None = None
    errors: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    warnings: list[str] = field(default_factory=list[str])


@dataclass(slots=True, kw_only=True)
class Spacetime:
    """An answered query."""

    query_text: str
    response: str
    tool_used: str
    confidence: float
    trace: WeavingTrace = field(default_factory=WeavingTrace)
    id: str = ""
    decision: DecisionRecord | None = field(default=None, compare=False)
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    context_summary: str | None = None
    sources_used: list[str] = field(default_factory=list[str])
    created_at: datetime = field(default_factory=now)
    quality_score: float | None = None
    user_feedback: str | None = None

    @classmethod
    def of(cls, run: ToolRun) -> Self:
        """Return a run under HoloLoom's names."""
        metadata = {"pattern_card" if k == "depth" else k: v for k, v in run.metadata.items()}
        selected = "" if run.tool == "error" else run.tool
        extras = {"tool_selected": selected, "context_shards_count": len(run.trace.context_ids)}
        extras = metadata.pop(_EXTRAS, extras)
        summary = extras.pop("context_summary", None)
        trace = WeavingTrace(**_renamed(run.trace, {new: old for old, new in EARLIER_TRACE.items()}), **extras)
        values = _renamed(run, {new: old for old, new in EARLIER_RUN.items()})
        values.update(trace=trace, metadata=metadata, context_summary=summary)
        return cls(**values)

    def run(self) -> ToolRun:
        """Return it as a run; fields that a run does not have go into its metadata."""
        values, trace = _renamed(self, EARLIER_RUN), _renamed(self.trace, EARLIER_TRACE)
        extras = {name: trace.pop(name) for name in _TRACE_EXTRAS}
        extras["context_summary"] = values.pop("context_summary")
        metadata = {"depth" if k == "pattern_card" else k: v for k, v in self.metadata.items()}
        values.update(trace=RunTrace(**trace), metadata=metadata | {_EXTRAS: extras})
        return ToolRun(**values)

    def add_quality_score(self, score: float, feedback: str | None = None) -> None:
        """Set a score from 0 to 1, and an optional comment."""
        run = self.run()
        run.add_quality(score, feedback)
        self.quality_score, self.user_feedback = run.quality, run.comment

    def observation(self) -> dict[str, Any]:
        """Return the observation of the query."""
        return experience_in(self.run().to_json(), 0.0)["observation"]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values only; `from_dict` returns an equal record."""
        return to_json(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the record of `to_dict`. Unknown keys are refused by name."""
        values, trace, choice = dict(data), data.get("trace"), data.get("decision")
        if trace is not None:
            values["trace"] = from_json(WeavingTrace, trace)
        if choice is not None:
            confidence = values["trace"].tool_confidence
            known = {"text": data["query_text"], "name": data["tool_used"], "confidence": confidence}
            values["decision"] = DecisionRecord.from_json(choice, id=data["id"], **known)
        return from_json(cls, values)

    def save(self, path: str | Path) -> None:
        """Write it as JSON, atomically."""
        replace_file(REAL_FS, Path(path), msgspec.json.format(msgspec.json.encode(self.to_dict()), indent=2))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        return cls.from_dict(read_json(path, "a Spacetime"))

    def copy(self) -> Self:
        """Return an equal record that shares nothing with this one."""
        return self.from_dict(self.to_dict())

    def summarize(self) -> dict[str, Any]:
        """Return a short summary."""
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


def _renamed(record: Any, names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(entry.name, entry.name): getattr(record, entry.name) for entry in fields(record)}


def experience_in(run: Mapping[str, Any], reward: float) -> dict[str, Any]:
    """Return one decision as a plain dict, from the JSON of a run; an episode of one step, so it is always done."""
    trace, extras = run["trace"], run["metadata"].get(_EXTRAS, {})
    return {
        "observation": {
            "motifs_detected": trace["cues"],
            "embedding_scales_used": trace["scales"],
            "context_shards_count": extras.get("context_shards_count", len(trace["context_ids"])),
            "retrieval_mode": trace["retrieval"],
            "threads_activated_count": len(trace["context_ids"]),
        },
        "action": run["tool"],
        "reward": reward,
        "done": True,
        "info": {
            "confidence": run["confidence"],
            "quality_score": run["quality"],
            "duration_ms": trace["duration_ms"],
            "policy_adapter": trace["chooser"],
            "num_errors": len(trace["errors"]),
            "num_warnings": len(trace["warnings"]),
            "bandit_statistics": extras.get("bandit_statistics"),
        },
    }


class FabricCollection:
    """Several records: saved and loaded together, and their statistics."""

    def __init__(self, spacetimes: list[Spacetime] | None = None) -> None:
        self.spacetimes = list(spacetimes or [])

    def add(self, spacetime: Spacetime) -> None:
        self.spacetimes.append(spacetime)

    def __len__(self) -> int:
        return len(self.spacetimes)

    def __iter__(self) -> Iterator[Spacetime]:
        return iter(self.spacetimes)

    def save_all(self, directory: str | Path) -> list[Path]:
        """Write spacetime_0000_20260101_120000.json and so on."""
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

    def get_statistics(self) -> dict[str, Any]:
        """Return count, tools, mean confidence, quality and duration, success rate, first and last moment."""
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
