"""From a rollout to the batch the loss sees, with every bad number refused by name on the way."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from surefoot.core.advantage import gae
from surefoot.core.batch import Batch
from surefoot.data.rollout import Rollout
from surefoot.errors import AllActionsMasked, IllegalAction, NonFiniteValue


def to_batch(
    rollout: Rollout, valid: np.ndarray, *, gamma: float, lam: float, sequential: bool, device: torch.device
) -> Batch:
    """[T, N] steps with advantages and targets; `valid` says which of them count.

    A minibatch is a choice of columns. A memoryless policy's steps are laid out as [1, T·N], padding dropped, so that
    every step is a column of its own; a sequential policy keeps its N streams.
    """
    load = _Loader(device)
    count = load(valid)
    value, reward = load(rollout.value), load(rollout.reward)
    advantage = gae(
        reward,
        value,
        load(rollout.next_value),
        load(rollout.terminated),
        load(rollout.ended),
        None if valid.all() else count,
        gamma=gamma,
        lam=lam,
    )
    batch = Batch(
        obs={name: load(x) for name, x in rollout.obs.items()},
        action=load(_action(rollout.action)),
        log_prob=load(rollout.log_prob),
        value=value,
        advantage=advantage,
        target=advantage + value,
        valid=None if valid.all() else count,
        action_mask=None if rollout.action_mask is None else load(rollout.action_mask),
        ref_log_prob=None if rollout.ref_log_prob is None else load(rollout.ref_log_prob),
        start=load(rollout.start) if sequential else None,
        context={name: load(x) for name, x in rollout.context.items()} if sequential else {},
    )
    return batch if sequential else _one_row(batch)


def _one_row(batch: Batch) -> Batch:
    """[T, N, …] as [1, T·N, …] without the steps that do not count."""
    keep = None if batch.valid is None else batch.valid.flatten().nonzero().squeeze(-1)

    def row(x: Tensor) -> Tensor:
        flat = x.flatten(0, 1)
        return (flat if keep is None else flat.index_select(0, keep)).unsqueeze(0)

    return Batch(
        obs={name: row(x) for name, x in batch.obs.items()},
        action=row(batch.action),
        log_prob=row(batch.log_prob),
        value=row(batch.value),
        advantage=row(batch.advantage),
        target=row(batch.target),
        action_mask=None if batch.action_mask is None else row(batch.action_mask),
        ref_log_prob=None if batch.ref_log_prob is None else row(batch.ref_log_prob),
    )


def _action(array: np.ndarray) -> np.ndarray:
    """Choices as int64, which is what torch gathers by; anything else as it is."""
    return array.astype(np.int64) if np.issubdtype(array.dtype, np.integer) else array


class _Loader:
    """Numpy to tensor, cast once at this boundary: float64 becomes float32, everything else stays as it is."""

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def __call__(self, array: np.ndarray) -> Tensor:
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)


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
