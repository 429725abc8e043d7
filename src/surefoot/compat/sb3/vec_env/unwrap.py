"""Functions that look into wrapped vec envs."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from surefoot.compat.sb3.vec_env.base import VecEnv
from surefoot.compat.sb3.vec_env.foreign import ForeignVecEnv
from surefoot.compat.sb3.vec_env.normalize import VecNormalize


def unwrap_vec_wrapper(env: Any, vec_wrapper_class: type[Any]) -> Any:
    """Return the outermost wrapper of `env` that is a `vec_wrapper_class`, or SB3's class of that name; None if there is none."""
    return next((layer for layer in layers_of(env) if _is_a(layer, vec_wrapper_class)), None)


def is_vecenv_wrapped(env: Any, vec_wrapper_class: type[Any]) -> bool:
    """Return whether one of the wrappers of `env` is a `vec_wrapper_class`."""
    return unwrap_vec_wrapper(env, vec_wrapper_class) is not None


def layers_of(env: Any) -> Sequence[Any]:
    """Return the wrappers of a vec env and the vec env inside, from outside to inside; those of an installed SB3 too."""
    layers = [env]
    while (inner := vars(layers[-1]).get("venv")) is not None:
        layers.append(inner)
    return [layer for layer in layers if not isinstance(layer, ForeignVecEnv)]


def _is_a(env: Any, kind: type[Any]) -> bool:
    named = (base for base in type(env).__mro__ if base.__name__ == kind.__name__)
    return isinstance(env, kind) or any(base.__module__.startswith("stable_baselines3.") for base in named)


def sync_envs_normalization(env: VecEnv, eval_env: VecEnv) -> None:
    """Copy the statistics of each `VecNormalize` of `env` to that of `eval_env`, which must be wrapped alike."""
    for train, evaluation in zip(layers_of(env)[:-1], layers_of(eval_env), strict=False):
        assert "venv" in vars(evaluation), _differs(train, evaluation)
        if _is_a(train, VecNormalize):
            assert _is_a(evaluation, VecNormalize), _differs(train, evaluation)
            if train.norm_obs:
                evaluation.obs_rms = deepcopy(train.obs_rms)
            evaluation.ret_rms = deepcopy(train.ret_rms)


def _differs(train: VecEnv, evaluation: VecEnv) -> str:
    return (
        f"the training env has a {type(train).__name__} where the evaluation env has a {type(evaluation).__name__}; wrap "
        "both alike"
    )
