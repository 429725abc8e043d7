"""SB3's type aliases."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from surefoot.compat.sb3.functions import Schedule as Schedule
from surefoot.compat.sb3.rollout_buffer import RolloutBufferSamples as RolloutBufferSamples

GymEnv = gym.Env[Any, Any] | Any
MaybeCallback = Any
PyTorchObs = Any
TensorDict = dict[str, Any]
GymObs = Any
GymResetReturn = tuple[Any, dict[str, Any]]
GymStepReturn = tuple[Any, float, bool, bool, dict[str, Any]]
