"""PPO for language models on one ordinary machine: one backbone is policy, reference and critic."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from surefoot._lazy import lazy_names
from surefoot._moved import warn_moved

if TYPE_CHECKING:
    from surefoot.lm.config import LMConfig as LMConfig
    from surefoot.lm.constitution.principles import Constitution as Constitution
    from surefoot.lm.policy.backbone import Backbone as Backbone
    from surefoot.lm.policy.loading import load_backbone as load_backbone
    from surefoot.lm.policy.policy import LMPolicy as LMPolicy
    from surefoot.lm.rewards.reward_fit import train_reward_model as train_reward_model
    from surefoot.lm.rewards.reward_model import RewardModel as RewardModel
    from surefoot.lm.rewards.reward_model import ValueModel as ValueModel
    from surefoot.lm.rewards.scoring import scorer as scorer
    from surefoot.lm.sampling.sampler import Sampling as Sampling
    from surefoot.lm.sampling.sampler import generate as generate
    from surefoot.lm.training import LMTraining as LMTraining

_load, __dir__ = lazy_names(__name__)


def __getattr__(name: str) -> Any:
    if name == "PPOTrainer":  # until the next release
        warn_moved("surefoot.lm.PPOTrainer", "surefoot.compat.constitutional_ai.PPOTrainer")
        return import_module("surefoot.compat.constitutional_ai").PPOTrainer
    return _load(name)
