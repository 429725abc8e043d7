"""Rollouts that must not be learned from are refused: numbers that are not finite, masks that contradict the actions."""

from __future__ import annotations

import numpy as np

from surefoot.data.rollout import Rollout
from surefoot.errors import AllActionsMasked, IllegalAction, NonFiniteValue


def refuse_bad_masks(mask: np.ndarray, action: np.ndarray, valid: np.ndarray, choices: tuple[int, ...]) -> None:
    """Raise if a choice is left with nothing, or if a stored one is forbidden by the mask it was stored with.

    `choices` says how many options each choice has; their masks lie side by side in `mask`.
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
                "the mask stored with a step must be the one it was chosen under"
            )


def refuse_bad_numbers(rollout: Rollout, valid: np.ndarray) -> None:
    """Raise for a NaN or infinity in anything learning would read, naming tensor, step and stream.

    `next_value` of a terminal step is not read, and may be anything.
    """
    read = {"reward": rollout.reward, "value": rollout.value, "log_prob": rollout.log_prob}
    read |= {f"obs[{name!r}]": x for name, x in rollout.obs.items()}
    if rollout.action.dtype.kind == "f":
        read["action"] = rollout.action
    for name, array in read.items():
        if array.dtype.kind == "f" and np.count_nonzero(_fits(array)) < array.size:
            _name_first(name, array, valid)
    if np.count_nonzero(_fits(rollout.next_value)) < valid.size:
        _name_first("next_value", rollout.next_value, valid & ~rollout.terminated)


def _fits(array: np.ndarray) -> np.ndarray:
    """True where a number is finite, and still is in float32."""
    return np.abs(array) <= np.finfo(np.float32).max if array.dtype == np.float64 else np.isfinite(array)


def _name_first(name: str, array: np.ndarray, valid: np.ndarray) -> None:
    bad = ~_fits(array.reshape(*array.shape[:2], -1)).all(axis=2) & valid
    if bad.any():
        step, stream = (int(i) for i in np.argwhere(bad)[0])
        raise NonFiniteValue(
            f"{name} is {array[step, stream]} at step {step} of stream {stream} ({int(bad.sum())} such in this rollout); "
            "nothing was learned from it. Mend the world, or set nonfinite='drop_episode' to leave such episodes out"
        )
