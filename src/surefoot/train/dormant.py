"""Which hidden units no longer answer, whatever is seen (Sokar et al. 2023)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from surefoot.nets.policy import Policy, Seen

ACTIVATIONS = (nn.ReLU, nn.Tanh, nn.ELU, nn.GELU, nn.SiLU, nn.LeakyReLU)
SILENT = 0.025
"""A unit whose mean answer is below this share of its layer's is dormant."""


@torch.no_grad()
def dormant_share(policy: Policy, seen: Seen) -> float | None:
    """Share of the hidden units that are dormant over these observations; None where there are none to look at."""
    if not isinstance(policy, nn.Module) or policy.sequential:
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
        policy.act(seen, generator=torch.Generator(next(policy.parameters()).device).manual_seed(0))
    finally:
        for module in units:
            del module.__dict__["forward"]
    if not answers:
        return None
    silent = sum(float((each <= SILENT * each.mean()).sum()) for each in answers)
    return silent / sum(len(each) for each in answers)
