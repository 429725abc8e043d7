"""The settings of a constitution run, read from its YAML file."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, cast

import yaml

from surefoot.errors import DataError


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineConfig:
    """What a constitution file for `surefoot lm constitution run` may say; paths are as seen from that file."""

    model: str
    prompts: str
    held_out: str
    principles: str | None = None
    """None: the four that come with surefoot."""
    rounds: int = 1
    tokens: int = 48
    temperature: float = 0.7
    batch: int = 8
    sft_epochs: int = 3
    sft_lr: float = 2e-4
    keep_clean: bool = True
    """Also learn from first responses that broke nothing, so that helpfulness is not forgotten."""
    responses: int = 4
    """Responses to each prompt that are compared with each other."""
    judge: str = "rules"
    """Who prefers: rules, or the model itself (in both orders, by log-prob)."""
    reward_epochs: int = 20
    reward_lr: float = 1e-3
    ppo_steps: int = 20
    ppo_lr: float = 1e-4
    ppo: dict[str, Any] = dataclasses.field(default_factory=dict[str, Any])
    """More knobs of the PPO stage, of LMConfig."""
    learner: dict[str, Any] = dataclasses.field(default_factory=dict[str, Any])
    """Knobs of its learner, of PPOConfig, such as minibatches and target_kl."""
    dtype: str = "auto"
    seed: int = 0

    @classmethod
    def read(cls, path: Path | str) -> Self:
        """From a YAML file; a name that is not known is named."""
        path = Path(path)
        try:
            loaded: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as why:
            raise DataError(f"cannot read {path}: {why}") from why
        if not isinstance(loaded, dict):
            raise DataError(f"{path} must be a mapping with model, prompts and held_out")
        given = cast(dict[str, Any], loaded)
        known = {f.name: f for f in dataclasses.fields(cls)}
        if unknown := sorted(set(given) - set(known)):
            raise DataError(f"{path} has {unknown[0]!r}; it may have {', '.join(known)}")
        if missing := [n for n in ("model", "prompts", "held_out") if n not in given]:
            raise DataError(f"{path} has no {missing[0]}")
        for name in ("prompts", "held_out", "principles"):
            if isinstance(given.get(name), str):
                given[name] = str(path.parent / given[name])
        if isinstance(given["model"], str) and (path.parent / given["model"]).is_dir():
            given["model"] = str(path.parent / given["model"])
        if given.get("judge", "rules") not in ("rules", "model"):
            raise DataError(f"{path}: judge is {given['judge']!r}; it must be rules or model")
        return cls(**given)
