"""Logits divided by a temperature: above 1 the policy tries more, below 1 it keeps to what it prefers."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from surefoot.errors import ConfigError
from surefoot.nets.heads import DiscreteHead
from surefoot.nets.multi_discrete import MultiDiscreteHead
from surefoot.nets.policy import Policy


@contextmanager
def at_temperature(policy: Policy, temperature: float) -> Generator[None]:
    """The policy with this temperature until the block ends; a rollout must be learned from at the one it was made at.

    Outside, a policy always has temperature 1. The likeliest action is the same at any.
    """
    heads = [] if temperature == 1.0 else discrete_heads(policy)
    for head in heads:
        head.temperature = temperature
    try:
        yield
    finally:
        for head in heads:
            head.temperature = 1.0


def discrete_heads(policy: Policy) -> list[DiscreteHead | MultiDiscreteHead]:
    """The heads that have a temperature; ConfigError if there are none."""
    heads = [module for module in policy.modules() if isinstance(module, DiscreteHead | MultiDiscreteHead)]
    if not heads:
        raise ConfigError(
            "temperature is set but no action of this policy is a choice; leave it 1: what makes real-valued actions try "
            "more is log_std_init and ent_coef"
        )
    return heads
