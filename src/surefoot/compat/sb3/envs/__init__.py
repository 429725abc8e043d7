"""SB3's small envs for tests, its env checker and its Atari wrappers."""

from __future__ import annotations

from surefoot.compat.sb3.envs.bit_flipping import BitFlippingEnv
from surefoot.compat.sb3.envs.grid import SimpleMultiObsEnv
from surefoot.compat.sb3.envs.identity import (
    FakeImageEnv,
    IdentityEnv,
    IdentityEnvBox,
    IdentityEnvMultiBinary,
    IdentityEnvMultiDiscrete,
)

__all__ = [
    "BitFlippingEnv",
    "FakeImageEnv",
    "IdentityEnv",
    "IdentityEnvBox",
    "IdentityEnvMultiBinary",
    "IdentityEnvMultiDiscrete",
    "SimpleMultiObsEnv",
]
