"""Functions that look into wrapped vec envs."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from surefoot.compat.sb3.vec_env.base import VecEnv, VecEnvWrapper
from surefoot.compat.sb3.vec_env.normalize import VecNormalize


def unwrap_vec_wrapper(env: Any, vec_wrapper_class: type[Any]) -> Any:
    """Return the outermost wrapper of `env` that is a `vec_wrapper_class`; None if there is none."""
    while isinstance(env, VecEnvWrapper):
        if isinstance(env, vec_wrapper_class):
            return env
        env = env.venv
    return None


def is_vecenv_wrapped(env: Any, vec_wrapper_class: type[Any]) -> bool:
    """Return whether one of the wrappers of `env` is a `vec_wrapper_class`."""
    return unwrap_vec_wrapper(env, vec_wrapper_class) is not None


def layers_of(env: Any) -> Sequence[VecEnv]:
    """Return a vec env and everything inside it, from outside to inside."""
    layers = [env]
    while isinstance(layers[-1], VecEnvWrapper):
        layers.append(layers[-1].venv)
    return layers


def sync_envs_normalization(env: VecEnv, eval_env: VecEnv) -> None:
    """Copy the statistics of each `VecNormalize` of `env` to that of `eval_env`, which must be wrapped alike."""
    for train, evaluation in zip(layers_of(env), layers_of(eval_env), strict=False):
        if not isinstance(train, VecEnvWrapper):
            return
        assert isinstance(evaluation, VecEnvWrapper), _differs(train, evaluation)
        if isinstance(train, VecNormalize):
            assert isinstance(evaluation, VecNormalize), _differs(train, evaluation)
            if train.norm_obs:
                evaluation.obs_rms = deepcopy(train.obs_rms)
            evaluation.ret_rms = deepcopy(train.ret_rms)


def _differs(train: VecEnv, evaluation: VecEnv) -> str:
    return (
        f"the training env has a {type(train).__name__} where the evaluation env has a {type(evaluation).__name__}; wrap "
        "both alike"
    )
