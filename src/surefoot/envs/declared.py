"""Steps of any world in the dtypes and shapes that the engine declares, or an error that names the part."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from surefoot.data.spaces import choice_sizes
from surefoot.envs.api import Arrays, Step, View, World
from surefoot.errors import EnvError

_BOOL, _FLOAT64 = np.dtype(np.bool_), np.dtype(np.float64)


def declared_view(world: World, view: View) -> View:
    """Return the view with every part as the world's spaces declare it; raise `EnvError` for what cannot be converted."""
    n, mask = world.num_envs, view.action_mask
    obs = _observations(world, view.obs, "observation")
    if mask is not None:
        mask = _array(world, "the action mask", mask, _BOOL, (n, sum(choice_sizes(world.action))))
    return view if obs is view.obs and mask is view.action_mask else View(obs=obs, action_mask=mask)


def declared_step(world: World, step: Step) -> Step:
    """Return the step with float64 rewards, boolean flags and declared observations; raise `EnvError` otherwise."""
    shape, final = (world.num_envs,), step.final_obs
    flags = {
        name: _array(world, name, getattr(step, name), _BOOL, shape) for name in ("terminated", "truncated", "valid")
    }
    result = Step(
        view=declared_view(world, step.view),
        reward=_array(world, "the reward", step.reward, _FLOAT64, shape),
        final_obs=None if final is None else _observations(world, final, "final observation"),
        stats=step.stats,
        **flags,
    )
    if bool(result.truncated.any()) and final is None:
        raise EnvError(f"{world.name} truncated an episode without final_obs; return the last observation there")
    return result


def _observations(world: World, obs: Arrays, what: str) -> Arrays:
    if list(obs) != list(world.observation) and set(obs) != set(world.observation):
        raise EnvError(
            f"{world.name} returned the {what} parts {list(obs)}; its spaces declare {list(world.observation)}"
        )
    parts = {
        name: _array(world, f"the {what} {name!r}", obs[name], np.dtype(box.dtype), (world.num_envs, *box.shape))
        for name, box in world.observation.items()
    }
    return obs if all(parts[name] is obs[name] for name in parts) else parts


def _array(world: World, what: str, value: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
    """Return a C-contiguous array of this dtype and shape, without a copy if it is one already."""
    plain = type(value) is np.ndarray and value.dtype == dtype and value.shape == shape
    if plain and value.flags.c_contiguous and value.flags.writeable:
        return value
    array = np.asarray(value)
    # A column of rewards is as clear as a row of them.
    if array.size != math.prod(shape) or array.shape[:1] != shape[:1]:
        raise EnvError(f"{world.name} returned {what} of shape {list(array.shape)}; it must be {list(shape)}")
    refused = f"{world.name} returned {what} as {array.dtype}; it must be {dtype}, or numbers that {dtype} can hold"
    if array.dtype.kind not in "biufO":
        raise EnvError(refused)
    try:
        with np.errstate(all="ignore"):
            result = np.array(array, dtype, order="C").reshape(shape)
    except (TypeError, ValueError, OverflowError) as error:
        raise EnvError(f"{refused} ({error})") from None
    # Rounding to fewer digits is what a dtype is for; losing a fraction, a sign or a flag is not.
    if not np.can_cast(array.dtype, dtype, "same_kind") and not np.array_equal(result, array.reshape(shape)):
        raise EnvError(refused)
    return result
