"""Which hidden units no longer answer, whatever is seen (Sokar et al. 2023)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.policy import Policy

ACTIVATIONS = (nn.ReLU, nn.Tanh, nn.ELU, nn.GELU, nn.SiLU, nn.LeakyReLU)
SILENT = 0.025
"""A unit whose mean answer is below this share of its layer's is dormant."""


@torch.no_grad()
def dormant_share(policy: Policy, obs: dict[str, Tensor]) -> float | None:
    """Share of the hidden units that are dormant over these observations; None where there are none to look at."""
    # A module or a policy of somebody's own is not asked behind their back: they may count, log or draw.
    if not isinstance(policy, ActorCritic) or policy.own_module or policy.sequential:
        return None
    answers: list[Tensor] = []

    def listening(module: nn.Module) -> Callable[[Tensor], Tensor]:
        answer = module.forward

        def heard(x: Tensor) -> Tensor:
            given = answer(x)
            if given.ndim == 2:  # [rows, units]: of images, the layers after the pictures
                answers.append(given.abs().mean(0))
            return given

        return heard

    # Not hooks: our own networks call `forward` itself, which is quicker and goes past them.
    units = [module for module in policy.modules() if isinstance(module, ACTIVATIONS)]
    for module in units:
        module.__dict__["forward"] = listening(module)
    try:
        policy.network.forward(obs)
    finally:
        for module in units:
            del module.__dict__["forward"]
    if not answers:
        return None
    silent = sum(float((each <= SILENT * each.mean()).sum()) for each in answers)
    return silent / sum(len(each) for each in answers)
