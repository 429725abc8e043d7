"""Statistics of an agent: telemetry of its updates, and rows for a report from its runs or a trial's log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.decide.core.agent import Agent
from surefoot.decide.evaluation.trial import LOG, decisions_of
from surefoot.decide.tools.run_log import FILE, LoggedRun, RunLog
from surefoot.errors import RunNotFound
from surefoot.learn.report import UpdateReport
from surefoot.telemetry.writer import Recorder


class ToolTelemetry:
    """Writer of telemetry.ndjson in an agent's directory; does nothing without a directory."""

    def __init__(self, directory: Path | None, agent: Agent, seed: int) -> None:
        self._directory, self._agent, self._seed = directory, agent, seed
        self._recorder: Recorder | None = None

    def update(self, report: UpdateReport | None, runs: Sequence[LoggedRun], count: int, learnings: int) -> None:
        """Write one record, with statistics of the last runs, and the metrics of a PPO update if there was one."""
        if self._directory is None:
            return
        # Created with the first update: an agent that never learns leaves no telemetry file.
        if self._recorder is None:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._recorder = Recorder(self._directory / "telemetry.ndjson", run=self._directory.name)
            self._recorder.header(env="tools", seed=self._seed, config=self._agent.settings, path="torch", num_envs=1)
        if report is None:
            self._recorder.update(env_steps=count, updates=learnings, m=run_statistics(runs))
            return
        self._recorder.update(
            env_steps=count,
            updates=report.update,
            m={**report.metrics(), **run_statistics(runs)},
            epochs=[each.as_dict() for each in report.epochs],
            seconds=report.seconds,
            stopped_early=report.stopped_early,
            rolled_back=report.rolled_back,
            skipped_reason=report.skipped_reason,
        )

    def close(self) -> None:
        """Write the final record, if anything was written."""
        if self._recorder is not None:
            self._recorder.close("finished")
            self._recorder = None


def run_statistics(runs: Sequence[LoggedRun]) -> dict[str, float]:
    """Return success rate, mean reward and the share of each tool."""
    if not runs:
        return {}
    tools = Counter(each.run.tool for each in runs)
    return {
        "success_rate": float(np.mean([each.success for each in runs])),
        "average_reward": float(np.mean([each.raw_reward for each in runs])),
        **{f"action_share_{tool}": count / len(runs) for tool, count in sorted(tools.items())},
    }


def rows_in(directory: Path) -> list[dict[str, Any]]:
    """Return one row per decision: chosen, reward (0 … 1), probability, confidence; right and nearest where known."""
    if (directory / LOG).exists():
        return decisions_of(directory)
    if not (directory / FILE).exists():
        raise RunNotFound(f"{directory} contains neither a trial nor an agent's runs")
    # A larger capacity than any log: opening it must not delete runs.
    log = RunLog(directory, capacity=10**9)
    rows = [
        {
            "text": logged.run.query,
            "chosen": logged.run.tool,
            "right": logged.feedback.get("right"),
            "reward": float(logged.reward),
            "probability": 1.0 if logged.run.decision is None else logged.run.decision.probability,
            "confidence": float(logged.run.trace.tool_confidence),
        }
        for logged in log.recent(10**9)
    ]
    log.close()
    return rows
