"""A prompt run on disk: its prompts, settings, learning curve and policy; and files of prompts and people's scores."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from surefoot.decide.promotion import Versions
from surefoot.decide.prompts.examples import Examples
from surefoot.decide.prompts.policy import PromptConfig, PromptPolicy
from surefoot.decide.prompts.scorers import LintScorer, RidgeScorer, Scorer
from surefoot.decide.prompts.tasks import TaskRow
from surefoot.decide.prompts.text import read_json_line, read_lines
from surefoot.errors import ConfigError, RunError
from surefoot.train.rundir.rundir import RunDir

FILE, SCORER, VERSIONS = "prompts.json", "scorer.json", "versions"
ENV = "prompts"
"""Name of the kind of run, which a run without a name begins with."""

Curve = list[tuple[int, float]]
"""(scores used so far, mean gain) per pass over the prompts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptRun:
    """A trained policy with what it was trained on."""

    policy: PromptPolicy
    prompts: tuple[str, ...]
    curve: Curve
    evaluations: int
    """Number of scores that training used."""
    scorer: Scorer
    """The lint or a fitted scorer; a task's scorer is not saved, pass the task again."""
    measured: str
    """What the policy was trained on, such as "task rows.jsonl with lm:smollm2"."""

    def save(self, directory: RunDir, command: Sequence[str] = ()) -> None:
        if isinstance(self.scorer, RidgeScorer):
            self.scorer.save(directory.path / SCORER)
        self.policy.agent.save(Versions(directory.path / VERSIONS))
        examples = self.policy.examples
        content = {
            "format": 3,
            "seed": self.policy.seed,
            "config": asdict(self.policy.config),
            "measured": self.measured,
            "evaluations": self.evaluations,
            "curve": self.curve,
            "prompts": list(self.prompts),
            "examples": [] if examples is None else [[row.prompt, row.answer] for row in examples.rows],
        }
        (directory.path / FILE).write_text(json.dumps(content, ensure_ascii=False) + "\n", encoding="utf-8")
        # Last: a directory without it is not found as a run.
        header = {
            "spec": {"env": ENV, "seed": self.policy.seed, "total_steps": self.evaluations},
            "command": list(command),
            "resume": "surefoot prompts train",
        }
        directory.header.write_text(json.dumps(header, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, directory: RunDir) -> PromptRun:
        """Read a run that `save` wrote."""
        path = directory.path / FILE
        try:
            content: Any = json.loads(path.read_text(encoding="utf-8"))
            if content["format"] != 3:
                raise RunError(f"{directory.path} was written by an earlier version; train the policy again")
            rows = [TaskRow(prompt=str(prompt), answer=str(answer)) for prompt, answer in content["examples"]]
            config, examples = PromptConfig(**content["config"]), Examples(rows) if rows else None
            policy = PromptPolicy(config, seed=int(content["seed"]), examples=examples)
            prompts, curve = tuple(map(str, content["prompts"])), [(int(x), float(y)) for x, y in content["curve"]]
            measured, evaluations = str(content["measured"]), int(content["evaluations"])
        except FileNotFoundError:
            raise RunError(f"{directory.path} is not a run on prompts: it has no {FILE}") from None
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise RunError(f"{path} could not be read: {error}") from error
        policy.agent.load(Versions(directory.path / VERSIONS))
        saved = directory.path / SCORER
        return cls(
            policy=policy,
            prompts=prompts,
            curve=curve,
            evaluations=evaluations,
            scorer=RidgeScorer.load(saved) if saved.exists() else LintScorer(),
            measured=measured,
        )


def read_prompts(path: Path) -> list[str]:
    """Return one prompt per line of a text file, or the field "prompt" (or "text") per line of a .jsonl file."""
    lines, as_json = read_lines(path, "prompts"), path.suffix in (".jsonl", ".ndjson")
    prompts = [_prompt_in(line, where) if as_json else line.strip() for where, line in lines]
    if not prompts:
        raise ConfigError(f'{path} has no prompt; it needs one per line, or JSON objects with a field "prompt"')
    return prompts


def _prompt_in(line: str, where: str) -> str:
    row = read_json_line(line, where)
    text = row.get("prompt", row.get("text")) if isinstance(row, dict) else row
    if not isinstance(text, str) or not text.strip():
        raise ConfigError(f'{where} has no text in "prompt"; the value is {str(text)[:40]!r}')
    return text


def read_scores(path: Path) -> tuple[list[str], list[float]]:
    """Return prompts and people's scores, 1 to 5 in the file, as 0 to 1. Raise `ConfigError` with the line's number."""
    prompts, scores = list[str](), list[float]()
    for where, line in read_lines(path, "scores"):
        try:
            row: Any = json.loads(line)
            prompt, score = str(row["prompt"]), float(row["score"])
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise ConfigError(f'{where} needs "prompt" and "score": {error}') from error
        if not 1.0 <= score <= 5.0:
            raise ConfigError(f"{where} has score {score:g}; scores must be from 1 to 5")
        prompts.append(prompt)
        scores.append((score - 1.0) / 4.0)
    return prompts, scores
