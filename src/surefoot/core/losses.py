"""The PPO objective (Schulman et al. 2017), part by part. Every tensor is [T, B] unless said otherwise."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from surefoot.core.batch import Batch, Evaluation
from surefoot.core.divergence import k3
from surefoot.core.masked import masked_mean

LOG_RATIO_LIMIT = 20.0
"""exp(89) overflows float32 and inf · 0 is NaN; beyond e±20 the clip has long decided anyway."""


@dataclass(frozen=True, slots=True)
class Losses:
    """The parts of the objective as scalars, and the log-ratio they came from."""

    total: Tensor
    policy: Tensor
    value: Tensor
    entropy: Tensor
    kl_to_reference: Tensor | None
    log_ratio: Tensor
    """[T, B], before clamping."""


def clipped_surrogate(log_ratio: Tensor, advantage: Tensor, *, clip: float, dual_clip: float | None = None) -> Tensor:
    """max(-A r, -A clip(r, 1 - ε, 1 + ε)) per sample, with log r held to ±20.                 eq. 7

    With `dual_clip` c, where A < 0, it is -A c at most (Ye et al. 2020): nothing else bounds it from that side.
    """
    ratio = log_ratio.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT).exp()
    loss = torch.maximum(-advantage * ratio, -advantage * ratio.clamp(1.0 - clip, 1.0 + clip))
    if dual_clip is None:
        return loss
    return torch.where(advantage < 0.0, torch.minimum(loss, -advantage * dual_clip), loss)


def value_loss(value: Tensor, target: Tensor, old_value: Tensor, *, clip: float | None) -> Tensor:
    """½ (V - R)² per sample; with `clip`, ½ max((V - R)², (V_clipped - R)²) around the old value.

    The max is what makes it pessimistic; without it (SB3) a clipped value gets no gradient back towards its target.
    """
    error = (value - target).square()
    if clip is not None:
        clipped = old_value + (value - old_value).clamp(-clip, clip)
        error = torch.maximum(error, (clipped - target).square())
    return 0.5 * error


def ppo_loss(
    seen: Evaluation,
    batch: Batch,
    advantage: Tensor,
    *,
    clip: float,
    value_clip: float | None,
    vf_coef: float,
    ent_coef: float,
    kl_coef: float = 0.0,
    dual_clip: float | None = None,
) -> Losses:
    """L = policy + vf_coef · value - ent_coef · entropy (+ kl_coef · KL to a reference), to be minimised.   eq. 9

    `advantage` is what the policy is judged by, usually the batch's own after standardising.
    """
    log_ratio = seen.log_prob - batch.log_prob
    policy = masked_mean(clipped_surrogate(log_ratio, advantage, clip=clip, dual_clip=dual_clip), batch.valid)
    critic = masked_mean(value_loss(seen.value, batch.target, batch.value, clip=value_clip), batch.valid)
    entropy = masked_mean(seen.entropy, batch.valid)
    total = policy + vf_coef * critic
    if ent_coef != 0.0:
        total = total - ent_coef * entropy
    reference = None
    if batch.ref_log_prob is not None:
        # Sampled from us, so KL(π‖ref) is the mean of k3(log ref/π); its gradient reaches π through log π.
        log_ref = (batch.ref_log_prob - seen.log_prob).clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
        reference = masked_mean(k3(log_ref) if seen.kl is None else seen.kl, batch.valid)
        if kl_coef != 0.0:
            total = total + kl_coef * reference
    return Losses(total, policy, critic, entropy, reference, log_ratio.detach())
