"""PPO for language models on one ordinary machine: one backbone is policy, reference and critic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from surefoot._lazy import lazy_names

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

__getattr__, __dir__ = lazy_names(__name__)
