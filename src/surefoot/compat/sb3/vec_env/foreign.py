"""Vec envs of an installed Stable-Baselines3."""

from __future__ import annotations

import sys
from typing import Any

from surefoot.compat.sb3.vec_env.base import VecEnv, VecEnvIndices, VecEnvStepReturn, VecEnvWrapper

METHODS = ("step_async", "step_wait", "reset", "env_method", "env_is_wrapped", "get_attr")


class ForeignVecEnv(VecEnvWrapper):
    """A vec env of another class with the same methods."""

    def reset(self) -> Any:
        return self.venv.reset()

    def step_wait(self) -> VecEnvStepReturn:
        return self.venv.step_wait()

    def env_is_wrapped(self, wrapper_class: type[Any], indices: VecEnvIndices = None) -> list[bool]:
        # The envs have wrappers of SB3: their class of the same name is meant.
        home = sys.modules.get(
            wrapper_class.__module__.replace("surefoot.compat.sb3.record", "stable_baselines3.common")
        )
        theirs = getattr(home, wrapper_class.__name__, wrapper_class)
        return self.venv.env_is_wrapped(theirs, indices=indices)


def as_vec_env(env: Any) -> Any:
    """Return a vec env of SB3 as one of ours; anything else unchanged."""
    if isinstance(env, VecEnv) or not all(hasattr(env, name) for name in METHODS):
        return env
    return ForeignVecEnv(env)
