"""The task of a prompt run (prompts, scorer, encoder), saved in its directory for resuming and use."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from surefoot.decide.encoders.encoder import make_encoder
from surefoot.decide.prompts.improve import Chooser, by_policy
from surefoot.decide.prompts.scorers import FeatureScorer, RidgeScorer, Scorer
from surefoot.decide.prompts.world import PromptConfig, PromptWorld
from surefoot.envs.api import World
from surefoot.errors import ConfigError, RunError
from surefoot.learn.checkpoint.checkpoint import load_checkpoint
from surefoot.nets.policy import load_weights
from surefoot.telemetry.reader import read_records
from surefoot.telemetry.schema import UpdateRecord
from surefoot.train.rundir.rundir import RunDir
from surefoot.train.spec import RunSpec
from surefoot.train.training import Training

FILE, SCORER = "prompts.json", "scorer.json"
ENV = "surefoot/Prompts-v0"
# Episodes have at most five steps, so short rollouts of many prompts; gamma 1: every step's gain counts fully.
SETTINGS: dict[str, Any] = {
    "envs": 32,
    "rollout_steps": 32,
    "epochs": 6,
    "minibatch_size": 128,
    "lr": 1e-3,
    "ent_coef": 0.003,
    "gamma": 1.0,
    "hidden": "128,128",
}
"""Default settings of a prompt run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptTask:
    """Prompts, their scorer, and the encoder that makes the observations."""

    prompts: tuple[str, ...]
    encoder: str = "hashing-1-256"
    config: PromptConfig = field(default_factory=PromptConfig)
    scorer: Scorer = field(default_factory=FeatureScorer)

    def world(self, streams: int, *, in_order: bool = False) -> PromptWorld:
        """Return the environment with `streams` prompts at a time."""
        return PromptWorld(
            self.prompts, self.scorer, make_encoder(self.encoder), streams, self.config, in_order=in_order
        )

    def make(self, streams: int, workers: Any = 0, /) -> World:
        """Return the environment of a run; `workers` is ignored, it runs in this process."""
        return self.world(streams)

    def save(self, directory: Path) -> None:
        """Write the task into a run's directory."""
        if isinstance(self.scorer, RidgeScorer):
            self.scorer.save(directory / SCORER)
        elif not isinstance(self.scorer, FeatureScorer):
            raise ConfigError("a run saves the built-in scorers only; pass your scorer again with --scorer")
        content = {
            "format": 1,
            "encoder": self.encoder,
            "max_steps": self.config.max_steps,
            "token_cost": self.config.token_cost,
            "prompts": list(self.prompts),
        }
        (directory / FILE).write_text(json.dumps(content, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, directory: Path) -> PromptTask:
        """Read the task that `save` wrote."""
        path = directory / FILE
        try:
            content: Any = json.loads(path.read_text(encoding="utf-8"))
            config = PromptConfig(max_steps=int(content["max_steps"]), token_cost=float(content["token_cost"]))
            prompts = tuple(str(prompt) for prompt in content["prompts"])
            encoder = str(content["encoder"])
        except FileNotFoundError:
            raise RunError(f"{directory} is not a run on prompts: it has no {FILE}") from None
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise RunError(f"{path} could not be read: {error}") from error
        scorer = RidgeScorer.load(directory / SCORER) if (directory / SCORER).exists() else FeatureScorer()
        return cls(prompts=prompts, encoder=encoder, config=config, scorer=scorer)


def read_prompts(path: Path) -> list[str]:
    """Return one prompt per line of a text file, or the field "prompt" (or "text") per line of a .jsonl file."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read prompts from {path}: {error}") from error
    if path.suffix not in (".jsonl", ".ndjson"):
        prompts = [line.strip() for line in lines]
    else:
        prompts = [_prompt_in(line, f"{path}:{number}") for number, line in enumerate(lines, 1) if line.strip()]
    prompts = [prompt for prompt in prompts if prompt]
    if not prompts:
        raise ConfigError(f'{path} has no prompt; it needs one per line, or JSON objects with a field "prompt"')
    return prompts


def _prompt_in(line: str, where: str) -> str:
    try:
        row: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{where} is not JSON: {error}") from error
    text = row.get("prompt", row.get("text")) if isinstance(row, dict) else row
    if not isinstance(text, str) or not text.strip():
        raise ConfigError(f'{where} has no text in "prompt"; the value is {str(text)[:40]!r}')
    return text


def read_scores(path: Path) -> tuple[list[str], list[float]]:
    """Return prompts and people's scores, 1 to 5 in the file, as 0 to 1. Raise `ConfigError` with the line's number."""
    prompts, scores = list[str](), list[float]()
    try:
        rows = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read scores from {path}: {error}") from error
    for number, line in enumerate(rows, 1):
        if not line.strip():
            continue
        try:
            row: Any = json.loads(line)
            prompt, score = str(row["prompt"]), float(row["score"])
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise ConfigError(f'{path}:{number} needs "prompt" and "score": {error}') from error
        if not 1.0 <= score <= 5.0:
            raise ConfigError(f"{path}:{number} has score {score:g}; scores must be from 1 to 5")
        prompts.append(prompt)
        scores.append((score - 1.0) / 4.0)
    return prompts, scores


def load_prompt_policy(directory: RunDir) -> tuple[PromptTask, Chooser]:
    """Return the task of a run on prompts, and the choices of its newest policy."""
    task = PromptTask.load(directory.path)
    training = Training(RunSpec.from_json(directory.read_header()["spec"]), make=task.make)
    load_weights(training.policy, load_checkpoint(directory.checkpoints).parts["weights"])
    return task, by_policy(training.policy)


def reward_curve(directory: Path) -> list[tuple[float, float]]:
    """Return (mutations so far, reward per episode) of every update in a run's record."""
    return [
        (float(record.env_steps), float(record.episodes.return_mean))
        for record in read_records(directory)
        if isinstance(record, UpdateRecord) and record.episodes is not None and record.episodes.return_mean is not None
    ]
