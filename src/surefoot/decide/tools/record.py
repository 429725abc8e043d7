"""The learning of an agent in the common record: every update with success rate, reward and which tools were taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.decide.agent import Agent
from surefoot.decide.policy.ppo import PPOChooser
from surefoot.learn.report import UpdateReport
from surefoot.telemetry.doctor.alerts import AlertRule
from surefoot.telemetry.writer import Recorder

ALERTS = (
    AlertRule(metric="entropy", below=0.1, lasting=3, name="too little exploration"),
    AlertRule(metric="kl_divergence", above=0.05, name="the policy changes too fast"),
)
"""The seed's two, as rules for `surefoot telemetry watch`; `alerts.yaml` beside this file has them too."""


class LearningRecord:
    """Writes telemetry.ndjson in an agent's directory; without a directory, nothing."""

    def __init__(self, directory: Path | None, agent: Agent, seed: int) -> None:
        self._directory, self._agent, self._seed = directory, agent, seed
        self._recorder: Recorder | None = None

    def update(self, report: UpdateReport, episodes: Sequence[dict[str, Any]], count: int) -> None:
        """One update, with what the last episodes were like."""
        if self._directory is None:
            return
        if self._recorder is None:
            self._recorder = self._open(self._directory)
        self._recorder.update(
            env_steps=count,
            updates=report.update,
            m={**report.metrics(), **numbers_of(episodes)},
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

    def _open(self, directory: Path) -> Recorder:
        directory.mkdir(parents=True, exist_ok=True)
        recorder = Recorder(directory / "telemetry.ndjson", run=directory.name)
        core = self._agent.chooser
        config = core.ppo.to_json() | core.config.to_json() if isinstance(core, PPOChooser) else {}
        recorder.header(
            env="tools",
            seed=self._seed,
            config={**config, "encoder": self._agent.encoder.name},
            path="torch",
            num_envs=1,
        )
        return recorder


def numbers_of(episodes: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Success rate, mean reward and the share of each tool."""
    if not episodes:
        return {}
    tools = Counter(each["spacetime"].tool_used for each in episodes)
    return {
        "success_rate": float(np.mean([each["success"] for each in episodes])),
        "average_reward": float(np.mean([each["raw_reward"] for each in episodes])),
        **{f"action_share_{tool}": count / len(episodes) for tool, count in sorted(tools.items())},
    }
