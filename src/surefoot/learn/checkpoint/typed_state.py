"""The counters and numbers of a checkpoint, read into types with ranges: a file may be damaged or made up."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np

from surefoot.errors import CheckpointCorrupt, SurefootError

# Above every real count, and far below what would overflow a float or make a loop endless.
_MOST = 2**53
Count = Annotated[int, msgspec.Meta(ge=0, le=_MOST)]
"""A number of updates, steps, threads, …"""
Factor = Annotated[float, msgspec.Meta(gt=0.0, lt=1e30)]
"""A finite factor above 0."""

T = TypeVar("T")


class CheckpointParts(dict[str, Any]):
    """The parts of a checkpoint; one that is missing raises `CheckpointCorrupt`."""

    def __missing__(self, name: str) -> Any:
        raise CheckpointCorrupt(f"the checkpoint has no part {name!r}; it has {', '.join(map(repr, self)) or 'none'}")


class LearnerState(msgspec.Struct):
    """The part "learner". Entries with a default are missing in checkpoints of earlier versions."""

    updates: Count
    total_updates: Count | None
    lr_scale: Factor
    bad_in_a_row: Count
    rollbacks_in_a_row: Count
    generator: Any
    kl_scale: Factor = 1.0
    values: dict[str, float] = {}


class CollectorCounts(msgspec.Struct):
    """The counter of the part "collector"; the rest of it are arrays, whose owners check them."""

    env_steps: Count


class RunProgress(msgspec.Struct):
    """The part "run". `spec`, `versions` and `kernel` are missing in checkpoints of earlier versions."""

    best_mean: float
    next_eval: Annotated[float, msgspec.Meta(ge=0.0)]
    next_checkpoint: Count
    threads: Count
    spec: dict[str, Any] = {}
    versions: dict[str, str] = {}
    kernel: str = ""


def typed(parts: Mapping[str, Any], name: str, kind: type[T]) -> T:
    """Return the part `name` as `kind`; raise `CheckpointCorrupt` if it is missing or out of range."""
    part = CheckpointParts(parts)[name]
    try:
        return msgspec.convert(part, kind)
    # AttributeError: msgspec asks an array for its keys.
    except (msgspec.ValidationError, AttributeError) as error:
        raise CheckpointCorrupt(f"the part {name!r} of the checkpoint has a bad value: {error}") from None


def refuse_unlike(saved: Any, current: Any, name: str) -> None:
    """Raise `CheckpointCorrupt` if a saved state holds other kinds of values than the current one.

    Arrays must have the same dtype and shape, numbers must be finite, and counts at least 0.
    """
    if isinstance(current, Mapping):
        if not isinstance(saved, Mapping):
            raise CheckpointCorrupt(f"{name} of the checkpoint is a {type(saved).__name__}; it must be a dict")
        for key in current.keys() & saved.keys():
            refuse_unlike(saved[key], current[key], f"{name}.{key}")
    elif hasattr(current, "dtype"):  # an array or a tensor; torch may not be loaded
        ours, theirs = (_kind_and_shape(x) for x in (current, saved))
        if ours != theirs:
            raise CheckpointCorrupt(f"{name} of the checkpoint is {theirs}; it must be {ours}")
    elif isinstance(current, int | float):
        number = np.asarray(saved)
        wanted = "iu" if isinstance(current, int) else "iuf"
        if (
            number.shape
            or number.dtype.kind not in wanted
            or not np.isfinite(number)
            or ("f" not in wanted and saved < 0)
        ):
            raise CheckpointCorrupt(f"{name} of the checkpoint is {saved!r}; it must be a number such as {current}")


def _kind_and_shape(value: Any) -> str:
    return f"{value.dtype} {list(value.shape)}".removeprefix("torch.") if hasattr(value, "dtype") else repr(value)[:80]


@contextmanager
def restoring(what: str) -> Generator[None]:
    """Turn the errors that made-up content causes while a state is restored into `CheckpointCorrupt`."""
    try:
        yield
    except SurefootError:
        raise  # it names the thing already
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RuntimeError, MemoryError) as error:
        name = f"{error}" if str(error) else type(error).__name__
        raise CheckpointCorrupt(f"the {what} of the checkpoint cannot be restored: {name}") from error
