"""The trainer API of the Constitutional AI system: `PPOTrainer(policy_model=…)` and its two model classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surefoot.compat.constitutional_ai.trainer import PPOTrainer as PPOTrainer
    from surefoot.lm.rewards.reward_model import RewardModel as RewardModel
    from surefoot.lm.rewards.reward_model import ValueModel as ValueModel


def __getattr__(name: str) -> Any:
    if name in ("PPOTrainer", "RewardModel", "ValueModel"):
        from surefoot.compat.constitutional_ai import trainer

        return getattr(trainer, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
