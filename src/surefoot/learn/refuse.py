"""Refuses rollouts that must not be learned from: non-finite numbers, masks that contradict the actions."""

from __future__ import annotations

import numpy as np

from surefoot.data.rollout import Rollout
from surefoot.errors import AllActionsMasked, IllegalAction, NonFiniteValue


def refuse_bad_masks(mask: np.ndarray, action: np.ndarray, valid: np.ndarray, choices: tuple[int, ...]) -> None:
    """Raise if a mask allows no option, or forbids the action that is stored with it.

    `choices` is the number of options of each choice; their masks are concatenated on the last axis of `mask`.
    """
    chosen = action[..., None] if action.ndim == 2 else action
    begin = 0
    for k, options in enumerate(choices):
        part, begin = mask[..., begin : begin + options], begin + options
        closed = ~part.any(axis=-1) & valid
        if closed.any():
            step, stream = (int(i) for i in np.argwhere(closed)[0])
            raise AllActionsMasked(f"the action mask allows nothing at step {step} of stream {stream}")
        allowed = np.take_along_axis(part, chosen[..., k, None].astype(np.int64), axis=-1)[..., 0]
        if not (allowed | ~valid).all():
            step, stream = (int(i) for i in np.argwhere(~allowed & valid)[0])
            raise IllegalAction(
                f"action {int(chosen[step, stream, k])} at step {step} of stream {stream} is forbidden by its own mask; "
                "store the mask that the action was chosen under"
            )


def refuse_bad_numbers(rollout: Rollout, valid: np.ndarray) -> None:
    """Raise for a NaN or infinity in an array that learning reads, naming array, step and stream.

    `next_value` of a terminal step is not read, so it may be anything.
    """
    arrays = {"reward": rollout.reward, "value": rollout.value, "log_prob": rollout.log_prob}
    arrays |= {f"obs[{name!r}]": x for name, x in rollout.obs.items()}
    if rollout.action.dtype.kind == "f":
        arrays["action"] = rollout.action
    for name, array in arrays.items():
        if array.dtype.kind == "f" and np.count_nonzero(_fits(array)) < array.size:
            _raise_for_first(name, array, valid)
    if np.count_nonzero(_fits(rollout.next_value)) < valid.size:
        _raise_for_first("next_value", rollout.next_value, valid & ~rollout.terminated)


def _fits(array: np.ndarray) -> np.ndarray:
    """Return True where a number is finite and stays so in float32, which learning casts to."""
    return np.abs(array) <= np.finfo(np.float32).max if array.dtype == np.float64 else np.isfinite(array)


def _raise_for_first(name: str, array: np.ndarray, valid: np.ndarray) -> None:
    bad = ~_fits(array.reshape(*array.shape[:2], -1)).all(axis=2) & valid
    if bad.any():
        step, stream = (int(i) for i in np.argwhere(bad)[0])
        raise NonFiniteValue(
            f"{name} is {array[step, stream]} at step {step} of stream {stream} ({int(bad.sum())} such in this rollout); "
            "nothing was learned from it. Fix the environment, or set nonfinite='drop_episode' to leave such episodes out"
        )
