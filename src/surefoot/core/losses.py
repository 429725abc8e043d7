"""The PPO objective (Schulman et al. 2017), term by term. Tensors are [T, B] unless noted."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from surefoot.core.batch import Batch, Evaluation
from surefoot.core.divergence import k3
from surefoot.core.masked import masked_mean

# exp(89) overflows float32, and inf · 0 is NaN. At e±20 the ratio is far outside of any clip range, so the loss is the same.
LOG_RATIO_LIMIT = 20.0


@dataclass(frozen=True, slots=True)
class Losses:
    """The terms of the objective as scalars, and the log-ratio they were computed from."""

    total: Tensor
    policy: Tensor
    value: Tensor
    entropy: Tensor
    kl_to_reference: Tensor | None
    log_ratio: Tensor
    """[T, B], before clamping."""


def clipped_surrogate(log_ratio: Tensor, advantage: Tensor, *, clip: float, dual_clip: float | None = None) -> Tensor:
    """Return max(-A r, -A clip(r, 1 - ε, 1 + ε)) per sample, with log r clamped to ±20.        eq. 7

    With `dual_clip` c the loss is at most -A c where A < 0 (Ye et al. 2020); it is unbounded there otherwise.
    """
    ratio = log_ratio.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT).exp()
    loss = torch.maximum(-advantage * ratio, -advantage * ratio.clamp(1.0 - clip, 1.0 + clip))
    if dual_clip is None:
        return loss
    return torch.where(advantage < 0.0, torch.minimum(loss, -advantage * dual_clip), loss)


def value_loss(value: Tensor, target: Tensor, old_value: Tensor, *, clip: float | None) -> Tensor:
    """Return ½ (V - R)² per sample; with `clip`, ½ max((V - R)², (V_clipped - R)²) around the old value.

    The max makes it pessimistic. Without it (SB3) a clipped value gets no gradient towards its target.
    """
    error = (value - target).square()
    if clip is not None:
        clipped = old_value + (value - old_value).clamp(-clip, clip)
        error = torch.maximum(error, (clipped - target).square())
    return 0.5 * error


def ppo_loss(
    evaluation: Evaluation,
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
    """Return L = policy + vf_coef · value - ent_coef · entropy (+ kl_coef · KL to a reference), to minimise.  eq. 9

    `advantage` is used by the policy term; usually it is the batch's advantage after standardising.
    """
    log_ratio = evaluation.log_prob - batch.log_prob
    policy = masked_mean(clipped_surrogate(log_ratio, advantage, clip=clip, dual_clip=dual_clip), batch.valid)
    critic = masked_mean(value_loss(evaluation.value, batch.target, batch.value, clip=value_clip), batch.valid)
    entropy = masked_mean(evaluation.entropy, batch.valid)
    total = policy + vf_coef * critic
    # A coefficient of 0 leaves the term out of the sum, so that its gradient is not computed.
    if ent_coef != 0.0:
        total = total - ent_coef * entropy
    reference = None
    if batch.ref_log_prob is not None:
        # The samples are from π, so KL(π‖ref) is the mean of k3(log ref/π); its gradient reaches π through log π.
        log_ref = (batch.ref_log_prob - evaluation.log_prob).clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
        reference = masked_mean(k3(log_ref) if evaluation.kl is None else evaluation.kl, batch.valid)
        if kl_coef != 0.0:
            total = total + kl_coef * reference
    return Losses(total, policy, critic, entropy, reference, log_ratio.detach())
