"""The ReflectionBuffer: woven queries with their rewards, on disk before they are acknowledged."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
import numpy as np

from surefoot.data.journal import Entry, Journal
from surefoot.decide.rewards import Feedback, Reward, RewardConfig
from surefoot.decide.tools.extract import RewardExtractor, experience_in_json
from surefoot.decide.tools.signals import LearningSignal, signals_of
from surefoot.decide.tools.spacetime import Spacetime
from surefoot.errors import ConfigError, RecordingError

KIND = "episode"
_FILE = "reflections.sqlite"


@dataclass(slots=True, kw_only=True)
class ReflectionMetrics:
    """What all episodes in the buffer come to; pattern and length statistics are over the learning window."""

    total_cycles: int = 0
    successful_cycles: int = 0
    failed_cycles: int = 0
    tool_success_rates: dict[str, float] = field(default_factory=dict[str, float])
    tool_avg_reward: dict[str, float] = field(default_factory=dict[str, float])
    tool_avg_confidence: dict[str, float] = field(default_factory=dict[str, float])
    tool_usage_counts: dict[str, int] = field(default_factory=dict[str, int])
    pattern_success_rates: dict[str, float] = field(default_factory=dict[str, float])
    pattern_avg_duration: dict[str, float] = field(default_factory=dict[str, float])
    pattern_usage_counts: dict[str, int] = field(default_factory=dict[str, int])
    successful_query_lengths: list[int] = field(default_factory=list[int])
    failed_query_lengths: list[int] = field(default_factory=list[int])
    late_feedback: int = 0
    """Feedback that came after the grace time: kept, not learned from."""
    last_updated: datetime | None = None


class ReflectionBuffer:
    """Keeps the last `capacity` episodes, oldest out first.

    `persist_path` is a directory (or a .sqlite file); None keeps everything in memory. Within `grace` seconds later
    feedback replaces the reward; after that it is written down but changes nothing that was learned.
    """

    def __init__(
        self,
        capacity: int = 1000,
        persist_path: str | Path | None = None,
        learning_window: int = 100,
        success_threshold: float = 0.6,
        reward_config: RewardConfig | None = None,
        grace: float = 0.0,
        analysis_interval: float = 300.0,
    ) -> None:
        if capacity < 1 or learning_window < 1:
            raise ConfigError(f"capacity is {capacity} and learning_window {learning_window}; both must be at least 1")
        self.capacity, self.learning_window, self.grace = capacity, learning_window, grace
        self.success_threshold, self.analysis_interval = success_threshold, analysis_interval
        self.reward_extractor = RewardExtractor(reward_config)
        self.journal = Journal(":memory:" if persist_path is None else _file(Path(persist_path)))
        self._generator = np.random.default_rng(0)
        self._late = self.journal.count("late")
        self._analysed_at = 0.0
        self._count = self.journal.count(KIND)

    def __len__(self) -> int:
        return self._count

    async def store(
        self, spacetime: Spacetime, feedback: Feedback | None = None, reward: float | None = None
    ) -> Reward:
        """Keep an episode; it is on the disk when this returns. The same Spacetime again is feedback that came later."""
        return await asyncio.to_thread(self.store_now, spacetime, feedback, reward)

    def store_now(self, spacetime: Spacetime, feedback: Feedback | None = None, reward: float | None = None) -> Reward:
        """`store` for programs without an event loop."""
        worked_out = self.reward_extractor.reward(spacetime, feedback)
        if reward is not None:
            low, high = self.reward_extractor.config.min_reward, self.reward_extractor.config.max_reward
            if not low <= reward <= high:
                raise ConfigError(f"reward is {reward}; it must lie between {low:g} and {high:g}")
            worked_out = Reward(value=reward, parts={"given": reward}, said_by="caller")
        id = spacetime.id or f"{spacetime.created_at.timestamp():.6f}-{len(self)}"
        known = self.journal.get(KIND, id) if spacetime.id else None
        if known is not None and time.time() - known.t > self.grace:
            self._late += 1
            self.journal.put(
                Entry(kind="late", id=f"{id}-{self._late}", body={"episode": id, "feedback": _plain(feedback)})
            )
            return _reward_in(known.body)
        body = {
            "spacetime": spacetime.to_dict(),
            "feedback": _plain(feedback),
            "reward": worked_out.unit,
            "raw_reward": worked_out.value,
            "parts": worked_out.parts,
            "said_by": worked_out.said_by,
            "success": worked_out.unit >= self.success_threshold,
            "timestamp": datetime.now(UTC).isoformat(),
        }
        self.journal.put(Entry(kind=KIND, id=id, tag=spacetime.tool_used, number=worked_out.value, body=body))
        self._count += known is None
        # A tenth too many before the oldest go: one deletion then serves many stores.
        if self._count > self.capacity + max(1, self.capacity // 10) or (self._count > self.capacity < 100):
            self.journal.keep_latest(KIND, self.capacity)
            self._count = self.journal.count(KIND)
        return worked_out

    def get_recent_episodes(self, n: int = 10) -> list[dict[str, Any]]:
        """The last n, oldest first: spacetime, feedback, reward (0 … 1), raw_reward, parts, success, timestamp."""
        return [_episode(entry) for entry in self.journal.latest(KIND, min(n, self.capacity))]

    def get_ppo_batch(self, batch_size: int | None = None, recent_only: bool = True) -> dict[str, list[Any]]:
        """observations, actions, rewards (-1 … 1), dones and infos side by side.

        The last ones, at most a learning window; with `recent_only=False` any of the buffer, drawn at random.
        """
        size = self.learning_window if batch_size is None else batch_size
        if recent_only:
            found = [_PART.decode(body) for body in self.journal.latest_bodies(KIND, min(size, self.capacity))]
            rows = [experience_in_json(msgspec.to_builtins(part.spacetime), part.raw_reward) for part in found]
        else:
            entries = self.journal.sample(KIND, size, self._generator)
            rows = [experience_in_json(e.body["spacetime"], e.body["raw_reward"]) for e in entries]
        names = {
            "observations": "observation",
            "actions": "action",
            "rewards": "reward",
            "dones": "done",
            "infos": "info",
        }
        return {plural: [row[one] for row in rows] for plural, one in names.items()}

    def since(self, seq: int, *, until: float | None = None) -> Iterator[Entry]:
        """Episodes after `seq` whose grace time is over, oldest first."""
        until = time.time() - self.grace if until is None else until
        for entry in self.journal.scan(KIND, seq):
            if entry.t > until:
                return
            yield entry

    def get_success_rate(self) -> float:
        """Share of episodes whose reward reaches the threshold; 0 for an empty buffer."""
        tallies = self.journal.tallies(KIND, 2.0 * self.success_threshold - 1.0).values()
        return sum(good for _, _, good in tallies) / max(1, sum(n for n, _, _ in tallies))

    def get_metrics(self) -> ReflectionMetrics:
        tallies = self.journal.tallies(KIND, 2.0 * self.success_threshold - 1.0)
        recent = self.get_recent_episodes(self.learning_window)
        total, good = (sum(row[i] for row in tallies.values()) for i in (0, 2))
        patterns: dict[str, list[tuple[bool, float]]] = defaultdict(list)
        confidence: dict[str, list[float]] = defaultdict(list)
        lengths: dict[bool, list[int]] = {True: [], False: []}
        for each in recent:
            spacetime: Spacetime = each["spacetime"]
            patterns[spacetime.metadata.get("pattern_card", "")].append((each["success"], spacetime.trace.duration_ms))
            confidence[spacetime.tool_used].append(spacetime.confidence)
            lengths[each["success"]].append(len(spacetime.query_text))
        return ReflectionMetrics(
            total_cycles=int(total),
            successful_cycles=int(good),
            failed_cycles=int(total - good),
            tool_success_rates={tool: right / n for tool, (n, _, right) in tallies.items()},
            tool_avg_reward={tool: mean for tool, (_, mean, _) in tallies.items()},
            tool_avg_confidence={tool: float(np.mean(some)) for tool, some in confidence.items()},
            tool_usage_counts={tool: n for tool, (n, _, _) in tallies.items()},
            pattern_success_rates={p: float(np.mean([ok for ok, _ in some])) for p, some in patterns.items()},
            pattern_avg_duration={p: float(np.mean([ms for _, ms in some])) for p, some in patterns.items()},
            pattern_usage_counts={p: len(some) for p, some in patterns.items()},
            successful_query_lengths=lengths[True][-100:],
            failed_query_lengths=lengths[False][-100:],
            late_feedback=self._late,
            last_updated=datetime.now(UTC),
        )

    def get_tool_recommendations(self) -> dict[str, float]:
        """Tools by ½ success + .3 confidence + .2 min(uses/100, 1), best first."""
        metrics = self.get_metrics()
        scores = {
            tool: 0.5 * rate
            + 0.3 * metrics.tool_avg_confidence.get(tool, 0.0)
            + 0.2 * min(metrics.tool_usage_counts[tool] / 100.0, 1.0)
            for tool, rate in metrics.tool_success_rates.items()
        }
        return dict(sorted(scores.items(), key=lambda item: -item[1]))

    async def analyze_and_learn(self, force: bool = False) -> list[LearningSignal]:
        """Suggestions from the learning window, at most every `analysis_interval` seconds unless forced."""
        if not force and time.monotonic() - self._analysed_at < self.analysis_interval:
            return []
        self._analysed_at = time.monotonic()
        return signals_of(await asyncio.to_thread(self.get_recent_episodes, self.learning_window))

    async def consolidate(self) -> dict[str, int]:
        """Let go of what teaches nothing any more: poor old episodes once it is 80 % full, and many like each other."""
        return await asyncio.to_thread(self.consolidate_now)

    def consolidate_now(self) -> dict[str, int]:
        window = self.journal.latest(KIND, self.learning_window)
        first = window[0].seq if window else 0
        pruned = 0
        if self._count >= 0.8 * self.capacity:
            pruned = self.journal.delete(KIND, self.journal.below(KIND, 2.0 * 0.2 - 1.0, first))
        groups: dict[tuple[str, str], list[tuple[int, float]]] = defaultdict(list)
        for entry in self.journal.scan(KIND):
            if entry.seq < first:
                key = (entry.body["spacetime"]["query_text"], entry.tag)
                groups[key].append((entry.seq, float(entry.number or 0.0)))
        doubles = [
            seq
            for rows in groups.values()
            if len(rows) >= 3 and np.std([number for _, number in rows]) < 0.1
            for seq, _ in rows[:-1]
        ]
        merged = self.journal.delete(KIND, doubles)
        self._count = self.journal.count(KIND)
        if pruned or merged:
            self.journal.compact()
        return {"pruned": pruned, "merged": merged, "left": self._count}

    def export(self, path: str | Path) -> int:
        """Every episode as a line of NDJSON; how many."""
        lines = [msgspec.json.encode({"id": e.id, "t": e.t, **e.body}) + b"\n" for e in self.journal.scan(KIND)]
        Path(path).write_bytes(b"".join(lines))
        return len(lines)

    def import_(self, path: str | Path) -> int:
        """Take in what `export` wrote; episodes that are already here are replaced. How many there were."""
        entries = list[Entry]()
        for number, line in enumerate(Path(path).read_bytes().splitlines(), 1):
            try:
                body = msgspec.json.decode(line)
                id, t = body.pop("id"), body.pop("t")
                spacetime = Spacetime.from_dict(body["spacetime"])
                raw = float(body["raw_reward"])
            except (msgspec.DecodeError, KeyError, TypeError, ValueError) as error:
                raise RecordingError(f"line {number} of {path} is no episode: {error}; nothing was taken in") from error
            entries.append(Entry(kind=KIND, id=id, tag=spacetime.tool_used, number=raw, body=body, t=t))
        self.journal.put(*entries)
        self.journal.keep_latest(KIND, self.capacity)
        self._count = self.journal.count(KIND)
        return len(entries)

    def clear(self) -> None:
        """Forget every episode."""
        self.journal.clear(KIND)
        self._count = 0

    def flush(self) -> None:
        """Nothing waits: an episode is on the disk when `store` returns. Kept for callers who ask."""

    def close(self) -> None:
        self.journal.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()


class _Trace(msgspec.Struct):
    """The fields of a trace that a batch needs; the others are skipped, not decoded."""

    motifs_detected: list[str]
    embedding_scales_used: list[int]
    context_shards_count: int
    retrieval_mode: str
    threads_activated: list[str]
    duration_ms: float
    policy_adapter: str
    errors: list[dict[str, str]]
    warnings: list[str]
    bandit_statistics: Any


class _Woven(msgspec.Struct):
    tool_used: str
    confidence: float
    quality_score: float | None
    trace: _Trace


class _Part(msgspec.Struct):
    spacetime: _Woven
    raw_reward: float


_PART = msgspec.json.Decoder(_Part)


def _file(path: Path) -> Path:
    return path if path.suffix in (".sqlite", ".db") else path / _FILE


def _episode(entry: Entry) -> dict[str, Any]:
    body = dict(entry.body)
    body["spacetime"] = Spacetime.from_dict(body["spacetime"])
    body["id"] = entry.id
    return body


def _reward_in(body: dict[str, Any]) -> Reward:
    return Reward(value=float(body["raw_reward"]), parts=dict(body["parts"]), said_by=str(body["said_by"]))


def _plain(feedback: Feedback | None) -> dict[str, Any]:
    def plain(value: Any) -> Any:
        if isinstance(value, np.generic):
            return value.item()
        return (
            [plain(each) for each in value]
            if isinstance(value, Iterable) and not isinstance(value, str | dict)
            else value
        )

    return {str(name): plain(value) for name, value in (feedback or {}).items()}
