"""Drop-in replacement for Stable-Baselines3's PPO: the same module paths, names, defaults and behaviour.

`sed 's/stable_baselines3/surefoot.sb3/'` is the migration of a script. The code is in `surefoot.compat.sb3`.
"""

from __future__ import annotations

from surefoot.compat.sb3 import A2C, DDPG, DQN, PPO, SAC, TD3, HerReplayBuffer, __version__, get_system_info
from surefoot.compat.sb3.paths import install

install()

__all__ = ["A2C", "DDPG", "DQN", "PPO", "SAC", "TD3", "HerReplayBuffer", "__version__", "get_system_info"]
