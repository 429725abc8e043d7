"""ReflectionBuffer: a `RunLog` under HoloLoom's names, with its statistics; RewardExtractor: its rewards."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import numpy as np

from surefoot.compat.hololoom.signals import LearningSignal, signals_of
from surefoot.compat.hololoom.spacetime import Spacetime, experience_in
from surefoot.decide.core.store import KIND
from surefoot.decide.rewards import Feedback, Reward, reward_of
from surefoot.decide.rewards import RewardConfig as RewardConfig
from surefoot.decide.tools.run_log import LoggedRun, RunLog, run_json


class RewardExtractor:
    """Compute the reward of a Spacetime; all of its parts are in `reward(…).parts`."""

    def __init__(self, config: RewardConfig | None = None) -> None:
        self.config = config or RewardConfig()

    def reward(self, spacetime: Spacetime, user_feedback: Feedback | None = None) -> Reward:
        return reward_of(spacetime.run().facts(), user_feedback, self.config)

    def compute_reward(self, spacetime: Spacetime, user_feedback: Feedback | None = None) -> float:
        """Return the number alone, in [-1, 1]."""
        return self.reward(spacetime, user_feedback).value

    def extract_experience(self, spacetime: Spacetime, user_feedback: Feedback | None = None) -> dict[str, Any]:
        """Return observation, action (the tool's name), reward, done, info."""
        return experience_in(spacetime.run().to_json(), self.reward(spacetime, user_feedback).value)


@dataclass(slots=True, kw_only=True)
class ReflectionMetrics:
    """Statistics of all episodes in the buffer; those of patterns and lengths are over the learning window."""

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
    """Feedback that came after its grace time: stored, not learned from."""
    last_updated: datetime | None = None


class ReflectionBuffer:
    """Store the last `capacity` episodes in a `RunLog`."""

    def __init__(
        self,
        capacity: int = 1000,
        persist_path: str | Path | None = None,
        learning_window: int = 100,
        success_threshold: float = 0.6,
        reward_config: RewardConfig | None = None,
        grace: float = 0.0,
        analysis_interval: float = 300.0,
        *,
        runs: RunLog | None = None,
    ) -> None:
        self.runs = runs or RunLog(
            persist_path,
            capacity=capacity,
            grace=grace,
            window=learning_window,
            success_threshold=success_threshold,
            reward_config=reward_config,
        )
        self.reward_extractor = RewardExtractor(self.runs.reward_config)
        self.journal, self.learning_window = self.runs.journal, self.runs.window
        self.analysis_interval, self._analysed_at = analysis_interval, 0.0
        self._generator = np.random.default_rng(0)

    def __len__(self) -> int:
        return len(self.runs)

    async def store(
        self, spacetime: Spacetime, feedback: Feedback | None = None, reward: float | None = None
    ) -> Reward:
        """Store an episode; it is on disk when this returns. Storing the same Spacetime again adds feedback."""
        return await asyncio.to_thread(self.store_now, spacetime, feedback, reward)

    def store_now(self, spacetime: Spacetime, feedback: Feedback | None = None, reward: float | None = None) -> Reward:
        """Do the same as `store` without an event loop."""
        return self.runs.put(spacetime.run(), feedback, reward)

    def get_recent_episodes(self, n: int = 10) -> list[dict[str, Any]]:
        """Return the last n, oldest first: spacetime, feedback, reward (0 … 1), raw_reward, parts, success, timestamp."""
        return [_episode(logged) for logged in self.runs.recent(n)]

    def get_ppo_batch(self, batch_size: int | None = None, recent_only: bool = True) -> dict[str, list[Any]]:
        """Return observations, actions, rewards (-1 … 1), dones and infos side by side.

        The last ones, at most a learning window; with `recent_only=False` any of the buffer, drawn at random.
        """
        size = self.learning_window if batch_size is None else batch_size
        if recent_only:
            entries = self.journal.latest(KIND, min(size, self.runs.capacity))
        else:
            entries = self.journal.sample(KIND, size, self._generator)
        # From JSON, without building a Spacetime: a batch of 64 takes a millisecond or two.
        rows = [experience_in(run_json(entry), float(entry.body["raw_reward"])) for entry in entries]
        names = ("observation", "action", "reward", "done", "info")
        return {f"{name}s": [row[name] for row in rows] for name in names}

    def get_metrics(self) -> ReflectionMetrics:
        tallies = self.journal.tallies(KIND, 2.0 * self.runs.success_threshold - 1.0)
        total, good = (sum(row[i] for row in tallies.values()) for i in (0, 2))
        patterns: dict[str, list[tuple[bool, float]]] = defaultdict(list)
        confidence: dict[str, list[float]] = defaultdict(list)
        lengths: dict[bool, list[int]] = {True: [], False: []}
        for each in self.runs.recent(self.learning_window, decisions=False):
            run = each.run
            patterns[run.metadata.get("depth", "")].append((each.success, run.trace.duration_ms))
            confidence[run.tool].append(run.confidence)
            lengths[each.success].append(len(run.query))
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
            late_feedback=self.runs.late,
            last_updated=datetime.now(UTC),
        )

    def get_tool_recommendations(self) -> dict[str, float]:
        """Return tools by ½ success + .3 confidence + .2 min(uses/100, 1), best first."""
        metrics = self.get_metrics()
        scores = {
            tool: 0.5 * rate
            + 0.3 * metrics.tool_avg_confidence.get(tool, 0.0)
            + 0.2 * min(metrics.tool_usage_counts[tool] / 100.0, 1.0)
            for tool, rate in metrics.tool_success_rates.items()
        }
        return dict(sorted(scores.items(), key=lambda item: -item[1]))

    async def analyze_and_learn(self, force: bool = False) -> list[LearningSignal]:
        """Return suggestions from the learning window, at most every `analysis_interval` seconds unless forced."""
        if not force and time.monotonic() - self._analysed_at < self.analysis_interval:
            return []
        self._analysed_at = time.monotonic()
        return signals_of(await asyncio.to_thread(self.get_recent_episodes, self.learning_window))

    async def consolidate(self) -> dict[str, int]:
        """Remove poor old episodes once the buffer is 80 % full, and repetitions with equal rewards."""
        return await asyncio.to_thread(self.consolidate_now)

    def consolidate_now(self) -> dict[str, int]:
        window = self.journal.latest(KIND, self.learning_window)
        first = window[0].seq if window else 0
        pruned = 0
        if len(self) >= 0.8 * self.runs.capacity:
            pruned = self.runs.delete(self.journal.below(KIND, 2.0 * 0.2 - 1.0, first))
        groups: dict[tuple[str, str], list[tuple[int, float]]] = defaultdict(list)
        for entry in self.journal.scan(KIND):
            if entry.seq < first:
                groups[run_json(entry)["query"], entry.tag].append((entry.seq, float(entry.number or 0.0)))
        repeated = [
            seq
            for rows in groups.values()
            if len(rows) >= 3 and np.std([number for _, number in rows]) < 0.1
            for seq, _ in rows[:-1]
        ]
        merged = self.runs.delete(repeated)
        if pruned or merged:
            self.journal.compact()
        return {"pruned": pruned, "merged": merged, "left": len(self)}

    def export(self, path: str | Path) -> int:
        """Write every episode as a line of NDJSON; return how many."""
        return self.runs.export(path)

    def import_(self, path: str | Path) -> int:
        """Read what `export` wrote; existing episodes are replaced. Return the number of episodes."""
        return self.runs.import_(path)

    def clear(self) -> None:
        """Delete every episode."""
        self.runs.clear()

    def close(self) -> None:
        self.runs.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


def _episode(logged: LoggedRun) -> dict[str, Any]:
    values = {entry.name: getattr(logged, entry.name) for entry in fields(logged)}
    run = values.pop("run")
    return {"spacetime": Spacetime.of(run), "id": run.id, **values}
