"""One pass over a data set, every decision written down: a run whose log can be reported on, replayed and evaluated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.data.journal import Entry, Journal
from surefoot.decide.agent import Agent
from surefoot.decide.evaluation.datasets import Dataset
from surefoot.decide.policy.experience_log import Log, Logged
from surefoot.decide.policy.ppo import PPOChooser
from surefoot.decide.promotion import Versions
from surefoot.errors import RecordingError, RunNotFound
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
    recorder.header(env="decisions", seed=seed, config=_config(agent), path="torch", num_envs=1)
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
    state = agent.state()
    weights = state["chooser"].pop("weights", {})
    Versions(directory / "versions").save(len(order), {"weights": weights, **state})
    recorder.close("finished")


def made_with(directory: Path) -> tuple[str, str]:
    """Encoder and chooser of a trial."""
    mine = _live(directory)["agent"]
    return str(mine["encoder"]), str(mine["kind"])


def load_agent(agent: Agent, directory: Path) -> None:
    """Take over the live version of a trial, with the descriptions it was trained with."""
    parts = _live(directory)
    chooser = {**parts["chooser"], "weights": parts["weights"]} if parts["weights"] else parts["chooser"]
    agent.set_state({"agent": parts["agent"], "chooser": chooser})
    for name, description in parts["agent"]["options"]["described"].items():
        if name not in agent.options:
            agent.options.add(name, description)


def _live(directory: Path) -> dict[str, Any]:
    versions = Versions(directory / "versions")
    if versions.live is None:
        left = "a trial that was stopped before its end" if (directory / LOG).exists() else "no trial"
        raise RunNotFound(f"{directory} holds {left}; `surefoot tools train DATA --out {directory}` makes a whole one")
    return versions.load().parts


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
    decided = agent.decide(data.texts[query], allowed=own)
    truth = data.names[data.right[query]]
    reward = float(decided.name == truth)
    if decided.name is not None:
        agent.outcome(decided.id, reward)
    return {
        "text": data.texts[query],
        "chosen": decided.name or "none",
        "right": truth,
        "nearest": decided.names[int(decided.scene.cosine.argmax())],
        "names": own,
        "reward": reward,
        "probability": decided.probability,
        "confidence": decided.confidence,
    }


def _config(agent: Agent) -> dict[str, Any]:
    core = agent.chooser
    known = core.ppo.to_json() | core.config.to_json() if isinstance(core, PPOChooser) else {}
    return known | {"encoder": agent.encoder.name, "chooser": agent.config.chooser}
