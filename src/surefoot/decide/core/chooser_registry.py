"""The choosers by name. The one that needs torch is imported when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from surefoot.decide.encoders.encoder import Encoder
from surefoot.decide.policy.choosers import Chooser, EpsilonGreedy, LinTS, LinUCB, Residual, ZeroShot
from surefoot.decide.policy.replay import ReplayChooser

if TYPE_CHECKING:
    from surefoot.decide.policy.ppo import PPOChooser

_CHOOSERS: dict[str, type[Any]] = {
    "replay": ReplayChooser,
    "residual": Residual,
    "linucb": LinUCB,
    "lints": LinTS,
    "egreedy": EpsilonGreedy,
    "nearest": ZeroShot,
}
CHOOSERS = ("replay", "ppo", *(name for name in _CHOOSERS if name != "replay"))


def make_chooser(name: str, encoder: Encoder, extra: int = 0, **options: Any) -> Chooser:
    """Return a fresh chooser of that name for vectors of this encoder."""
    if name == "ppo":
        from surefoot.decide.policy.ppo import PPOChooser

        return PPOChooser(encoder.dim + extra, encoder.likeness, **options)
    return _CHOOSERS[name](encoder.dim + extra, encoder.likeness, **options)


def as_ppo(chooser: Chooser) -> PPOChooser | None:
    """Return the chooser if it is the PPO chooser; imports torch only if it may be one."""
    if isinstance(chooser, tuple(_CHOOSERS.values())):
        return None
    from surefoot.decide.policy.ppo import PPOChooser

    return chooser if isinstance(chooser, PPOChooser) else None
