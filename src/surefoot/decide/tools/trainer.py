"""PPOTrainer, as the first system called it: trains the core of a policy on a buffer of reflected episodes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.decide.policy.choosers import Experience
from surefoot.decide.policy.ppo import PPO_DEFAULTS, PPOChooser
from surefoot.decide.tools.experience import experience_in
from surefoot.decide.tools.record import numbers_of
from surefoot.decide.tools.reflection import ReflectionBuffer
from surefoot.decide.tools.spacetime import Spacetime
from surefoot.errors import ConfigError, PolicyError
from surefoot.learn import config as learn_config
from surefoot.learn.checkpoint.checkpoint import load_checkpoint, save_checkpoint
from surefoot.learn.report import UpdateReport


def PPOConfig(**names: Any) -> learn_config.PPOConfig:  # the name in the seed's examples
    """The learner's config from any library's names, with the defaults of one-step decisions."""
    return PPO_DEFAULTS.replace(**names)


class PPOTrainer:
    """One learner on the policy's own core. Episodes are learned from once as fresh ones, and reused afterwards.

    Log-probabilities are those of the moment of the choice; they are in the Spacetime.
    """

    def __init__(self, policy: Any, config: learn_config.PPOConfig | None = None) -> None:
        if not isinstance(policy, PPOChooser):
            raise PolicyError(
                f"the policy is a {type(policy).__name__}; pass `shuttle.policy.core` of an agent with chooser='ppo'"
            )
        self.policy = policy
        if config is not None:
            policy.reconfigure(config)
        self.history: list[dict[str, float]] = []
        self.total_samples = 0
        self._cursor: dict[int, int] = {}

    async def train_on_buffer(self, buffer: ReflectionBuffer, min_samples: int = 32) -> dict[str, float]:
        """One PPO update on what is new in the buffer and a share of what is old; {} while it has too few episodes."""
        return await asyncio.to_thread(self.train_now, buffer, min_samples)

    def train_now(self, buffer: ReflectionBuffer, min_samples: int = 32) -> dict[str, float]:
        if len(buffer) < min_samples:
            return {}
        new = self._new(buffer)
        report = self.policy.learn([[each] for each in new]) if new else None
        report = self.policy.update() if report is None else report
        if report is None:
            raise ConfigError(
                "no episode in the buffer holds a choice of this policy's encoder; there is nothing to learn"
            )
        self.total_samples += report.samples
        metrics = metrics_of(report) | numbers_of(buffer.get_recent_episodes(buffer.learning_window))
        self.history.append(metrics)
        return metrics

    def get_metrics_summary(self) -> dict[str, float]:
        """Means over the last ten updates."""
        last = self.history[-10:]
        means = {
            f"avg_{short}": float(np.mean([row[name] for row in last])) if last else 0.0
            for short, name in (
                ("policy_loss", "policy_loss"),
                ("value_loss", "value_loss"),
                ("entropy", "entropy"),
                ("kl", "kl_divergence"),
            )
        }
        return {"total_updates": len(self.history), "total_samples": self.total_samples, **means}

    def save_checkpoint(self, path: str | Path) -> Path:
        """Weights, optimiser, outcome model and log, in files that run no code."""
        state = self.policy.state()
        weights = state.pop("weights")
        return save_checkpoint(Path(path), self.policy.learner.updates, {"weights": weights, "chooser": state})

    def load_checkpoint(self, path: str | Path) -> None:
        parts = load_checkpoint(Path(path)).parts
        self.policy.set_state({**parts["chooser"], "weights": parts["weights"]})

    def _new(self, buffer: ReflectionBuffer) -> list[Experience]:
        """Episodes that came since the last call, as far as they hold a choice."""
        entries = list(buffer.since(self._cursor.get(id(buffer), 0)))
        if entries:
            self._cursor[id(buffer)] = entries[-1].seq
        pairs = [(Spacetime.from_dict(e.body["spacetime"]), float(e.body["reward"])) for e in entries]
        found = [experience for s, r in pairs if (experience := experience_in(s, r)) is not None]
        return [each for each in found if len(each.scene.x) == self.policy.model.dim]


def metrics_of(report: UpdateReport) -> dict[str, float]:
    """The seed's names."""
    return {
        "policy_loss": report.policy_loss,
        "value_loss": report.value_loss,
        "entropy": report.entropy,
        "kl_divergence": report.kl_divergence,
        "approx_kl": report.approx_kl,
        "clip_fraction": report.clip_fraction,
        "update_count": float(report.update),
        "samples": float(report.samples),
    }
