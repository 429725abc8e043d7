"""Chooses the head for an action space."""

from __future__ import annotations

from surefoot.data.spaces import ActionSpace, Box, Discrete, Hybrid
from surefoot.errors import ConfigError
from surefoot.nets.config import NetConfig
from surefoot.nets.continuous_heads import BetaHead, GaussianHead, HybridHead, StateDependentHead, TanhHead
from surefoot.nets.heads import DiscreteHead
from surefoot.nets.multi_discrete import MultiDiscreteHead

AnyHead = DiscreteHead | MultiDiscreteHead | GaussianHead | TanhHead | BetaHead | StateDependentHead | HybridHead


def make_head(space: ActionSpace, features: int, config: NetConfig) -> AnyHead:
    """The head for an action space; `features` is the width of what the actor's trunk gives."""
    if isinstance(space, Hybrid):
        return HybridHead(space, _continuous(space.box, features, config))
    if isinstance(space, Box):
        return _continuous(space, features, config)
    for wrong in ("squash", "gsde", "beta"):
        if getattr(config, wrong):
            raise ConfigError(f"{wrong}=True is for continuous actions; {space} is discrete: leave it False")
    return DiscreteHead(space) if isinstance(space, Discrete) else MultiDiscreteHead(space)


def _continuous(
    space: Box, features: int, config: NetConfig
) -> GaussianHead | TanhHead | BetaHead | StateDependentHead:
    if config.gsde:
        return StateDependentHead(space, features, log_std_init=config.log_std_init)
    if config.beta:
        return BetaHead(space)
    return (TanhHead if config.squash else GaussianHead)(space, log_std_init=config.log_std_init)
