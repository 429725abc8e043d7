"""An agent's learning as telemetry: every update with success rate, reward and the share of each tool."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from surefoot.decide.core.agent import Agent
from surefoot.decide.tools.run_log import LoggedRun
from surefoot.learn.report import UpdateReport
from surefoot.telemetry.writer import Recorder


class ToolTelemetry:
    """Writes telemetry.ndjson in an agent's directory; without a directory, nothing."""

    def __init__(self, directory: Path | None, agent: Agent, seed: int) -> None:
        self._directory, self._agent, self._seed = directory, agent, seed
        self._recorder: Recorder | None = None

    def update(self, report: UpdateReport, runs: Sequence[LoggedRun], count: int) -> None:
        """Write one update, with statistics of the last runs."""
        if self._directory is None:
            return
        if self._recorder is None:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._recorder = Recorder(self._directory / "telemetry.ndjson", run=self._directory.name)
            self._recorder.header(env="tools", seed=self._seed, config=self._agent.settings, path="torch", num_envs=1)
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
