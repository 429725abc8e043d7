"""Run an agent once over a data set and log every decision, for reports, replay and off-policy evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.data.journal import Entry, Journal
from surefoot.decide.core.agent import Agent
from surefoot.decide.evaluation.datasets import Dataset
from surefoot.decide.evaluation.log_replay import Replay, compare
from surefoot.decide.policy.experience_log import Log, Logged
from surefoot.decide.policy.ppo import PPOChooser
from surefoot.decide.policy.replay import ReplayChooser
from surefoot.decide.promotion import Versions
from surefoot.errors import DecisionError, RecordingError, RunNotFound
from surefoot.telemetry.writer import Recorder

LOG = "decisions.sqlite"
KIND = "decision"
# Log entries per transaction: one commit per decision costs more than the decision; a crash loses at most this many.
_BATCH = 100
# Decisions between two lines of telemetry of a chooser that learns with every outcome.
_RECORD_EVERY = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Progress of a trial."""

    decisions: int
    success: float
    """Over all decisions so far."""
    recent: float
    """Over the last 500 decisions."""


def run_trial(
    agent: Agent, data: Dataset, directory: Path, *, count: int | None = None, every: int = 1, seed: int = 0
) -> Iterator[Progress]:
    """Decide every query once, in shuffled order; yield a `Progress` every 500 decisions and at the end.

    Args:
        agent: Gets the data set's options, decides and learns.
        data: Queries with their right options.
        directory: Where the log, the telemetry and the final version are written.
        count: Number of queries; None: all.
        every: Decisions between two learning steps.
        seed: Seed of the order.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RecordingError(f"the directory {directory} could not be created: {error.strerror}") from error
    for name, description in zip(data.names, data.descriptions, strict=True):
        agent.options.add(name, description)
    # A second number in the seed keeps the order independent of the agent's generator.
    order = np.random.default_rng([seed, 7]).permutation(len(data.texts))[:count]
    recorder = Recorder(directory / "telemetry.ndjson", run=directory.name)
    config = agent.settings | {"chooser": agent.config.chooser}
    recorder.header(env="decisions", seed=seed, config=config, path="torch", num_envs=1)
    entries, rewards = list[Entry](), list[float]()
    with Journal(directory / LOG) as journal:
        for t, query in enumerate(order):
            row = _decide(agent, data, int(query))
            rewards.append(row["reward"])
            entries.append(Entry(kind=KIND, id=f"{t:08d}", tag=row["chosen"], number=row["reward"], body=row))
            report = agent.learn() if t % every == every - 1 else None
            due = (t + 1) % _RECORD_EVERY == 0 or t == len(order) - 1
            if report is not None or (due and not isinstance(agent.chooser, PPOChooser)):
                recorder.update(
                    env_steps=t + 1,
                    updates=agent.version if report is None else report.update,
                    m={
                        **({} if report is None else report.metrics()),
                        "success_rate": float(np.mean(rewards[-500:])),
                        "average_reward": float(np.mean(rewards)),
                    },
                    seconds=None if report is None else report.seconds,
                )
            if len(entries) == _BATCH or t == len(order) - 1:
                journal.put(*entries)
                entries = []
            if (t + 1) % 500 == 0 or t == len(order) - 1:
                yield Progress(decisions=t + 1, success=float(np.mean(rewards)), recent=float(np.mean(rewards[-500:])))
    # The final version makes the directory a complete trial; see `_versions`.
    agent.save(Versions(directory / "versions"), len(order))
    recorder.close("finished")


def encoder_and_chooser(directory: Path) -> tuple[str, str]:
    """Return the encoder and the chooser of a trial."""
    saved = _versions(directory).load().parts["agent"]
    return str(saved["encoder"]), str(saved["kind"])


def load_agent(agent: Agent, directory: Path) -> None:
    """Load the live version of a trial into an agent, with the option descriptions it was trained on."""
    parts = agent.load(_versions(directory))
    for name, description in parts["agent"]["options"]["described"].items():
        if name not in agent.options:
            agent.options.add(name, description)


def _versions(directory: Path) -> Versions:
    versions = Versions(directory / "versions")
    if versions.live is None:
        content = "an unfinished trial" if (directory / LOG).exists() else "no trial"
        raise RunNotFound(f"{directory} holds {content}; run `surefoot tools train DATA --out {directory}`")
    return versions


def decisions_of(directory: Path) -> list[dict[str, Any]]:
    """Return the logged decisions, oldest first: text, chosen, right, nearest, reward, probability, confidence."""
    with Journal(directory / LOG) as journal:
        return [entry.body for entry in journal.scan(KIND)]


def log_of(rows: list[dict[str, Any]], agent: Agent) -> Logged:
    """Return logged decisions as arrays, with their texts encoded again."""
    log = Log(agent.encoder.dim + agent.config.extra, max(1, len(rows)))
    vectors = agent.encoder.encode([row["text"] for row in rows])
    for row, vector in zip(rows, vectors, strict=True):
        # Options that were removed since cannot be scored.
        names = [name for name in row["names"] or agent.options.names if name in agent.options]
        scene = agent.options.scene(vector, names)
        log.append(scene, names.index(row["chosen"]), row["probability"], row["reward"])
    return log.rows(slice(None))


def _decide(agent: Agent, data: Dataset, query: int) -> dict[str, Any]:
    """Decide one query, report its reward to the agent, and return the row for the log."""
    allowed = None if data.candidates is None else [data.names[i] for i in data.candidates[query]]
    record = agent.decide(data.texts[query], allowed=allowed)
    right = data.names[data.right[query]]
    reward = float(record.name == right)
    if record.name is not None:
        agent.outcome(record.id, reward)
    return {
        "text": data.texts[query],
        "chosen": record.name or "none",
        "right": right,
        "nearest": record.names[int(record.scene.cosine.argmax())],
        "names": allowed,
        "reward": reward,
        "probability": record.probability,
        "confidence": record.confidence,
    }


def replay(agent: Agent, directory: Path, *, last: int = 5000) -> Replay:
    """Compare the live version of a run with the nearest description, on the run's last decisions."""
    rows = [row for row in decisions_of(directory) if row["chosen"] != "none"]
    if not rows:
        raise DecisionError(f"{directory} has no decisions; run `surefoot tools train` first")
    load_agent(agent, directory)
    log = log_of(rows[-last:], agent)
    core = agent.chooser
    if not isinstance(core, PPOChooser | ReplayChooser):
        raise DecisionError("an evaluation of the log needs probabilities; only the choosers replay and ppo log them")
    return compare(core, log, {"nearest": core.prior, "learned": core.probabilities})
