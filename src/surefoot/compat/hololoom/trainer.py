"""PPOTrainer: trains the policy of a shuttle on a buffer of episodes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from surefoot.compat.hololoom.buffer import ReflectionBuffer
from surefoot.decide.policy.ppo import PPO_DEFAULTS, PPOChooser
from surefoot.decide.tools.telemetry import run_statistics
from surefoot.errors import ConfigError, PolicyError
from surefoot.learn import config as learn_config
from surefoot.learn.checkpoint.checkpoint import load_checkpoint, save_checkpoint


def PPOConfig(**names: Any) -> learn_config.PPOConfig:  # a class in HoloLoom's examples
    """Return the learner's config from any library's names, with the defaults of one-step decisions."""
    return PPO_DEFAULTS.replace(**names)


class ParameterGroup(dict[str, Any]):
    """Torch's view of an optimiser's settings; setting `lr` changes the learner's rate and resets its moments."""

    def __init__(self, policy: PPOChooser) -> None:
        super().__init__(lr=policy.ppo.lr)
        self._policy = policy

    def __setitem__(self, name: str, value: Any) -> None:
        if name != "lr":
            raise ConfigError(f"{name!r} cannot be set here; only 'lr' can, other settings are those of PPOConfig")
        self._policy.reconfigure(self._policy.ppo.replace(lr=value))
        super().__setitem__(name, value)


class BufferTrainer:
    """Train the policy. Episodes are learned from once as new ones, and reused afterwards.

    Log-probabilities are those at the time of the choice; they are stored with the episode.
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

    @property
    def optimizer(self) -> SimpleNamespace:
        """HoloLoom's way to the learning rate: `trainer.optimizer.param_groups[0]["lr"] = 1e-4`."""
        return SimpleNamespace(param_groups=[ParameterGroup(self.policy)])

    async def train_on_buffer(self, buffer: ReflectionBuffer, min_samples: int = 32) -> dict[str, float]:
        """Make one PPO update on the new episodes and a share of the old ones; return {} if there are too few."""
        return await asyncio.to_thread(self.train_now, buffer, min_samples)

    def train_now(self, buffer: ReflectionBuffer, min_samples: int = 32) -> dict[str, float]:
        if len(buffer) < min_samples:
            return {}
        finished = buffer.runs.store.finished(self._cursor.get(id(buffer), 0))
        if finished:
            self._cursor[id(buffer)] = finished[-1].position
        new = [each for each in finished if len(each.record.scene.x) == self.policy.model.dim]
        report = self.policy.learn([[each.record.experience(each.reward)] for each in new]) if new else None
        report = self.policy.update() if report is None else report
        if report is None:
            raise ConfigError(
                "no episode in the buffer has a choice of this policy's encoder; there is nothing to learn from"
            )
        self.total_samples += report.samples
        names = ("policy_loss", "value_loss", "entropy", "kl_divergence", "approx_kl", "clip_fraction")
        metrics = {name: float(getattr(report, name)) for name in names}
        metrics |= {"update_count": float(report.update), "samples": float(report.samples)}
        metrics |= run_statistics(buffer.runs.recent(buffer.learning_window, decisions=False))
        self.history.append(metrics)
        return metrics

    def get_metrics_summary(self) -> dict[str, float]:
        """Return means over the last ten updates."""
        last = self.history[-10:]
        names = {"policy_loss": "policy_loss", "value_loss": "value_loss", "entropy": "entropy", "kl": "kl_divergence"}
        means = {f"avg_{n}": float(np.mean([row[m] for row in last])) if last else 0.0 for n, m in names.items()}
        return {"total_updates": len(self.history), "total_samples": self.total_samples, **means}

    def save_checkpoint(self, path: str | Path) -> Path:
        """Save weights, optimizer, outcome model and log, without pickle."""
        state = self.policy.state()
        weights = state.pop("weights")
        return save_checkpoint(Path(path), self.policy.learner.updates, {"weights": weights, "chooser": state})

    def load_checkpoint(self, path: str | Path) -> None:
        parts = load_checkpoint(Path(path)).parts
        self.policy.set_state({**parts["chooser"], "weights": parts["weights"]})


# HoloLoom's name.
PPOTrainer = BufferTrainer
