"""PPO for language models on one ordinary machine: one backbone is policy, reference and critic."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surefoot.lm.config import LMConfig as LMConfig
    from surefoot.lm.constitution.principles import Constitution as Constitution
    from surefoot.lm.policy.backbone import Backbone as Backbone
    from surefoot.lm.policy.loading import load_backbone as load_backbone
    from surefoot.lm.policy.policy import LMPolicy as LMPolicy
    from surefoot.lm.rewards.reward_model import RewardModel as RewardModel
    from surefoot.lm.rewards.reward_model import ValueModel as ValueModel
    from surefoot.lm.rewards.reward_model import train_reward_model as train_reward_model
    from surefoot.lm.rewards.scoring import scorer as scorer
    from surefoot.lm.sampling.sampler import Sampling as Sampling
    from surefoot.lm.sampling.sampler import generate as generate
    from surefoot.lm.trainer import PPOTrainer as PPOTrainer
    from surefoot.lm.training import LMTraining as LMTraining

_HOME = {
    "Backbone": "backbone",
    "Constitution": "constitution",
    "LMConfig": "config",
    "LMPolicy": "policy",
    "LMTraining": "training",
    "PPOTrainer": "trainer",
    "RewardModel": "reward_model",
    "Sampling": "sample",
    "ValueModel": "reward_model",
    "generate": "sample",
    "load_backbone": "models",
    "scorer": "scoring",
    "train_reward_model": "reward_model",
}

__all__ = [
    "Backbone",
    "Constitution",
    "LMConfig",
    "LMPolicy",
    "LMTraining",
    "PPOTrainer",
    "RewardModel",
    "Sampling",
    "ValueModel",
    "generate",
    "load_backbone",
    "scorer",
    "train_reward_model",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'surefoot.lm' has no attribute {name!r}")
    return getattr(import_module(f"surefoot.lm.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
