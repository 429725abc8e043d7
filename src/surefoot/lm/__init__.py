"""PPO for language models on one ordinary machine: one backbone is policy, reference and critic."""

from __future__ import annotations

import importlib
from typing import Any

_WHERE = {
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
    "train_reward_model": "reward_model",
}

__all__ = [*_WHERE]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'surefoot.lm' has no attribute {name!r}")
    return getattr(importlib.import_module(f"surefoot.lm.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_WHERE)
