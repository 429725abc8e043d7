"""One pass over a data set, every decision written down: a run whose log can be reported on, replayed and evaluated."""

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
from surefoot.decide.policy.ppo import PPOChooser, spread
from surefoot.decide.promotion import Versions
from surefoot.errors import DecisionError, RecordingError, RunNotFound
from surefoot.telemetry.writer import Recorder

LOG = "decisions.sqlite"
KIND = "decision"
_TOGETHER = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where a trial stands."""

    decisions: int
    success: float
    """Cumulative."""
    recent: float
    """Of the last 500."""


def run_trial(
    agent: Agent, data: Dataset, directory: Path, *, count: int | None = None, every: int = 1, seed: int = 0
) -> Iterator[Progress]:
    """Ask every query once, in an order of its own; a Progress every 500 decisions and at the end."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RecordingError(f"{directory} cannot be made: {error.strerror}") from error
    for name, description in zip(data.names, data.descriptions, strict=True):
        agent.options.add(name, description)
    order = np.random.default_rng([seed, 7]).permutation(len(data.texts))[:count]
    recorder = Recorder(directory / "telemetry.ndjson", run=directory.name)
    config = agent.settings | {"chooser": agent.config.chooser}
    recorder.header(env="decisions", seed=seed, config=config, path="torch", num_envs=1)
    waiting, right = list[Entry](), list[float]()
    with Journal(directory / LOG) as journal:
        for t, query in enumerate(order):
            row = _ask(agent, data, int(query))
            right.append(row["reward"])
            waiting.append(Entry(kind=KIND, id=f"{t:08d}", tag=row["chosen"], number=row["reward"], body=row))
            report = agent.learn() if t % every == every - 1 else None
            if report is not None:
                recorder.update(
                    env_steps=t + 1,
                    updates=report.update,
                    m={
                        **report.metrics(),
                        "success_rate": float(np.mean(right[-500:])),
                        "average_reward": float(np.mean(right)),
                    },
                    seconds=report.seconds,
                )
            if len(waiting) == _TOGETHER or t == len(order) - 1:
                journal.put(*waiting)
                waiting = []
            if (t + 1) % 500 == 0 or t == len(order) - 1:
                yield Progress(decisions=t + 1, success=float(np.mean(right)), recent=float(np.mean(right[-500:])))
    agent.save(Versions(directory / "versions"), len(order))
    recorder.close("finished")


def made_with(directory: Path) -> tuple[str, str]:
    """Encoder and chooser of a trial."""
    mine = _versions(directory).load().parts["agent"]
    return str(mine["encoder"]), str(mine["kind"])


def load_agent(agent: Agent, directory: Path) -> None:
    """Take over the live version of a trial, with the descriptions it was trained with."""
    parts = agent.load(_versions(directory))
    for name, description in parts["agent"]["options"]["described"].items():
        if name not in agent.options:
            agent.options.add(name, description)


def _versions(directory: Path) -> Versions:
    versions = Versions(directory / "versions")
    if versions.live is None:
        left = "a trial that was stopped before its end" if (directory / LOG).exists() else "no trial"
        raise RunNotFound(f"{directory} holds {left}; `surefoot tools train DATA --out {directory}` makes a whole one")
    return versions


def decisions_of(directory: Path) -> list[dict[str, Any]]:
    """What was written down, oldest first: text, chosen, right, nearest, reward, probability, confidence."""
    with Journal(directory / LOG) as journal:
        return [entry.body for entry in journal.scan(KIND)]


def log_of(rows: list[dict[str, Any]], agent: Agent) -> Logged:
    """Written decisions as arrays, encoded anew."""
    log = Log(agent.encoder.dim + agent.config.extra, max(1, len(rows)))
    vectors = agent.encoder.encode([row["text"] for row in rows])
    for row, vector in zip(rows, vectors, strict=True):
        names = [name for name in row["names"] or agent.options.names if name in agent.options]
        scene = agent.options.scene(vector, names)
        log.append(scene, names.index(row["chosen"]), row["probability"], row["reward"])
    return log.rows(slice(None))


def _ask(agent: Agent, data: Dataset, query: int) -> dict[str, Any]:
    own = None if data.candidates is None else [data.names[i] for i in data.candidates[query]]
    record = agent.decide(data.texts[query], allowed=own)
    truth = data.names[data.right[query]]
    reward = float(record.name == truth)
    if record.name is not None:
        agent.outcome(record.id, reward)
    return {
        "text": data.texts[query],
        "chosen": record.name or "none",
        "right": truth,
        "nearest": record.names[int(record.scene.cosine.argmax())],
        "names": own,
        "reward": reward,
        "probability": record.probability,
        "confidence": record.confidence,
    }


def replay(agent: Agent, directory: Path, *, last: int = 5000) -> Replay:
    """The live version of a run against the nearest description, smoothed so that it could have been drawn."""
    rows = [row for row in decisions_of(directory) if row["chosen"] != "none"]
    if not rows:
        raise DecisionError(f"{directory} has no decisions to look at; `surefoot tools train` writes some")
    load_agent(agent, directory)
    log = log_of(rows[-last:], agent)
    core = agent.chooser
    if not isinstance(core, PPOChooser):
        raise DecisionError("only runs of the ppo chooser log probabilities to replay with")

    def near(seen: Logged) -> np.ndarray:
        return nearest(seen, core)

    return compare(core, log, {"nearest": near, "learned": core.probabilities})


def nearest(log: Logged, core: PPOChooser) -> np.ndarray:
    """[B, K]: the calibrated guess as a policy."""
    calibrated, _ = core.model.guesses(log.cosine, log.valid)
    return np.stack([spread(np.log(np.maximum(row, 1e-30)), core.config.floor)[0] for row in calibrated])
