"""SB3's vectorised envs and their wrappers."""

from __future__ import annotations

from gymnasium.vector.utils import CloudpickleWrapper

from surefoot.compat.sb3.vec_env.base import VecEnv, VecEnvWrapper
from surefoot.compat.sb3.vec_env.dummy import DummyVecEnv
from surefoot.compat.sb3.vec_env.normalize import VecNormalize
from surefoot.compat.sb3.vec_env.stacking import StackedObservations, VecFrameStack
from surefoot.compat.sb3.vec_env.subproc import SubprocVecEnv
from surefoot.compat.sb3.vec_env.unwrap import is_vecenv_wrapped, sync_envs_normalization, unwrap_vec_wrapper
from surefoot.compat.sb3.vec_env.wrappers import (
    VecCheckNan,
    VecExtractDictObs,
    VecMonitor,
    VecTransposeImage,
    VecVideoRecorder,
)


def unwrap_vec_normalize(env: VecEnv) -> VecNormalize | None:
    """Return the outermost `VecNormalize` around `env`; None if there is none."""
    return unwrap_vec_wrapper(env, VecNormalize)


__all__ = [
    "CloudpickleWrapper",
    "DummyVecEnv",
    "StackedObservations",
    "SubprocVecEnv",
    "VecCheckNan",
    "VecEnv",
    "VecEnvWrapper",
    "VecExtractDictObs",
    "VecFrameStack",
    "VecMonitor",
    "VecNormalize",
    "VecTransposeImage",
    "VecVideoRecorder",
    "is_vecenv_wrapped",
    "sync_envs_normalization",
    "unwrap_vec_normalize",
    "unwrap_vec_wrapper",
]
