"""Stable-Baselines3's PPO on this package's engine. Import it as `surefoot.sb3`."""

from __future__ import annotations

from surefoot.compat.sb3.functions import SB3_VERSION as __version__
from surefoot.compat.sb3.functions import get_system_info
from surefoot.compat.sb3.other_algorithms import A2C, DDPG, DQN, SAC, TD3, HerReplayBuffer
from surefoot.compat.sb3.ppo import PPO

__all__ = ["A2C", "DDPG", "DQN", "PPO", "SAC", "TD3", "HerReplayBuffer", "__version__", "get_system_info"]
