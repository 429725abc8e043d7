"""The settings of a constitution run, read from its YAML file."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, cast

import msgspec
import yaml

from surefoot.errors import DataError


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineConfig:
    """The settings of `surefoot lm constitution run`; paths are relative to the file."""

    model: str
    prompts: str
    held_out: str
    principles: str | None = None
    """None: the four that ship with surefoot."""
    rounds: int = 1
    tokens: int = 48
    temperature: float = 0.7
    batch: int = 8
    sft_epochs: int = 3
    sft_lr: float = 2e-4
    keep_clean: bool = True
    """Also learn from first responses without violations, so that the model stays helpful."""
    responses: int = 4
    """Responses per prompt that are compared with each other."""
    judge: str | None = None
    """What judges principles: classifier (fitted to labelled answers); rules (signs); [MODEL@]URL of an
    OpenAI-compatible server; or model, which compares two answers in both orders by log-prob and leaves the rest to the rules.
    None: classifier if the principles are the shipped ones or `labelled` is set, else rules."""
    encoder: str | None = None
    """Sentence encoder, such as minilm: revisions and preferred answers must be as close to the prompt as the others. With judge:
    classifier there is always one."""
    labelled: str | None = None
    """Labelled answers for judge: classifier; None: those that ship with surefoot."""
    algorithm: str = "ppo"
    """What learns from the preferences: ppo with a reward model, or dpo, which needs none."""
    reward_epochs: int = 20
    reward_lr: float = 1e-3
    ppo_steps: int | None = None
    """Steps of the ppo or dpo stage; the next three settings are of that stage too. None: 20 with ppo, 50 with dpo."""
    ppo_lr: float | None = None
    """Learning rate; None: 1e-4 with ppo, 4e-4 with dpo."""
    ppo: dict[str, Any] = dataclasses.field(default_factory=dict[str, Any])
    """Settings of LMConfig. Limits of fluency such as nll_limit are measured on the prompts that are trained on."""
    learner: dict[str, Any] = dataclasses.field(default_factory=dict[str, Any])
    """Settings of PPOConfig, such as minibatches and target_kl."""
    dtype: str = "auto"
    seed: int = 0

    @property
    def stage_steps(self) -> int:
        """Return the steps of the ppo or dpo stage."""
        # With dpo 40 steps at 3e-4 leave violations, 60 at 5e-4 leave the subject; docs/lm/measured.md has all three.
        return self.ppo_steps if self.ppo_steps is not None else 50 if self.algorithm == "dpo" else 20

    @property
    def stage_lr(self) -> float:
        """Return the learning rate of the ppo or dpo stage."""
        return self.ppo_lr if self.ppo_lr is not None else 4e-4 if self.algorithm == "dpo" else 1e-4

    @classmethod
    def read(cls, path: Path | str) -> Self:
        """Read a YAML file. Raise `DataError` for unknown or missing fields."""
        path = Path(path)
        try:
            loaded: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as why:
            raise DataError(f"cannot read {path}: {' '.join(str(why).split())}") from why
        if not isinstance(loaded, dict):
            raise DataError(f"{path} must be a mapping with model, prompts and held_out")
        fields = cast(dict[str, Any], loaded)
        known = [f.name for f in dataclasses.fields(cls)]
        if unknown := sorted(set(fields) - set(known)):
            raise DataError(f"{path} has {unknown[0]!r}; it may have {', '.join(known)}")
        if missing := [n for n in ("model", "prompts", "held_out") if n not in fields]:
            raise DataError(f"{path} has no {missing[0]}")
        for name in ("prompts", "held_out", "principles", "labelled"):
            if isinstance(fields.get(name), str):
                fields[name] = str(path.parent / fields[name])
        if isinstance(fields["model"], str) and (path.parent / fields["model"]).is_dir():
            fields["model"] = str(path.parent / fields["model"])
        judge, algorithm = str(fields.get("judge") or "rules"), fields.get("algorithm", "ppo")
        if judge not in ("rules", "model", "classifier") and "://" not in judge:
            raise DataError(f"{path}: judge is {judge!r}; it must be rules, model, classifier or [MODEL@]URL")
        if algorithm not in ("ppo", "dpo"):
            raise DataError(f"{path}: algorithm is {algorithm!r}; it must be ppo or dpo")
        try:
            # Not strict: YAML reads 4e-4 as text.
            return msgspec.convert(fields, cls, strict=False)
        except msgspec.ValidationError as why:
            # Such as: Expected `int | null`, got `str` - at `$.ppo_steps`
            reason, _, place = str(why).partition(" - at `$.")
            raise DataError(f"{path}: {place.rstrip('`')}: {reason[0].lower()}{reason[1:]}") from why
