"""Generalised advantage estimation (Schulman et al. 2016), with the successor's value as data."""

from __future__ import annotations

import torch
from torch import Tensor

from surefoot.errors import ShapeError


def gae(
    reward: Tensor,
    value: Tensor,
    next_value: Tensor,
    terminated: Tensor,
    ended: Tensor,
    valid: Tensor | None = None,
    *,
    gamma: float,
    lam: float,
) -> Tensor:
    """Return generalised advantages, [T, N] like every argument.

        δ_t = r_t + γ (1 - terminated_t) V(s_{t+1}) - V(s_t)          eq. 11
        A_t = δ_t + γλ (1 - ended_t) A_{t+1}                          eq. 16

    `next_value` is the value of the step's true successor: for a truncated episode the observation it was cut at, not
    the first observation of the next episode. An invalid step (padding, the extra row of a delayed reset) has advantage
    0, and no advantage is carried across it.
    """
    for name, tensor in (("value", value), ("next_value", next_value), ("terminated", terminated), ("ended", ended)):
        if tensor.shape != reward.shape:
            raise ShapeError(
                f"{name} is {list(tensor.shape)} but reward is {list(reward.shape)}; they must match, time-major [T, N]"
            )
    # `where`, not a product: a NaN in next_value at a terminal step would pass through 0 · NaN.
    future = torch.where(terminated, torch.zeros_like(next_value), next_value)
    delta = reward + gamma * future - value
    carry = torch.full_like(delta, gamma * lam).masked_fill(ended, 0.0)
    if valid is not None:
        delta = torch.where(valid, delta, torch.zeros_like(delta))
        carry = torch.where(valid, carry, torch.zeros_like(carry))
    # addcmul: one torch call per step of eq. 16, not two.
    advantages: list[Tensor] = []
    following = torch.zeros_like(delta[0]) if len(delta) else delta
    for delta_t, carry_t in zip(reversed(delta.unbind(0)), reversed(carry.unbind(0)), strict=True):
        following = torch.addcmul(delta_t, carry_t, following)
        advantages.append(following)
    return torch.stack(advantages[::-1]) if advantages else delta
