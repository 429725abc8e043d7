"""What a rollout was like, before anything was learned from it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from surefoot.core.batch import Batch
from surefoot.core.masked import masked_mean, masked_moments
from surefoot.core.moments import correlation, explained_variance
from surefoot.data.rollout import Rollout


def describe(batch: Batch, rollout: Rollout, valid: np.ndarray) -> dict[str, Any]:
    """Moments of advantages, rewards, values and targets, by the report's names."""
    advantage = batch.target - batch.value  # `advantage` may have been standardised in place of the raw one
    mean, std = masked_moments(advantage, batch.valid)
    target_mean, target_std = masked_moments(batch.target, batch.valid)
    kept = rollout.reward[valid]
    reward = torch.from_numpy(kept.astype(np.float32)).to(batch.value.device)
    flat = advantage.flatten() if batch.valid is None else advantage[batch.valid]
    return {
        "explained_variance": float(explained_variance(batch.value, batch.target, batch.valid)),
        "advantage_mean": float(mean),
        "advantage_std": float(std),
        "reward_advantage_corr": float(correlation(reward, flat)),
        "reward_mean": float(kept.mean()),
        "reward_std": float(kept.std()),
        "value_mean": float(masked_mean(batch.value, batch.valid)),
        "target_mean": float(target_mean),
        "target_std": float(target_std),
    }
