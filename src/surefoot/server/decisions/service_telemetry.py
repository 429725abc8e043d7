"""The record of a served policy: one line of telemetry.ndjson per version, which `watch`, `summary` and `doctor` read."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

import numpy as np

from surefoot.server.decisions.served_policy import ServedPolicy
from surefoot.telemetry.schema import Episodes
from surefoot.telemetry.writer import Recorder

# Actions whose share is in the record: each is a metric of every line, and a policy may have many more.
SHARES = 32


def record_version(serving: ServedPolicy, number: int, metrics: Mapping[str, float | None]) -> None:
    """Append a version's statistics to the record in the policy's folder."""
    config, learner = serving.config, serving.learner
    latest = learner.log.latest(1000)
    taken = latest.option[np.arange(len(latest)), latest.at] if len(latest) else np.zeros(0, np.int64)
    shares = {
        f"action_share_{name}": float((taken == index).mean())
        for index, name in enumerate(config.actions[:SHARES])
        if len(taken)
    }
    sizes = {"actions": len(config.actions), "embedding_size": config.embedding_size}
    # No rate limit: at the default one, versions that follow each other quickly would share a line.
    with contextlib.closing(Recorder(serving.versions.root, config.name, updates_per_second=1e9)) as recorder:
        recorder.header(env=f"decisions of {config.name}", seed=config.seed, config={**serving.agent.settings, **sizes})
        recorder.update(
            env_steps=learner.outcomes,
            updates=number,
            m={**{name: value for name, value in metrics.items() if value is not None}, **shares},
            episodes=Episodes.of(latest.reward.tolist(), [1] * len(latest)),
        )
