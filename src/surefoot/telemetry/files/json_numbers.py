"""Conversion of numbers that JSON cannot hold: NaN and infinity become null, and `nonfinite` names them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec
import numpy as np


def finite(numbers: Mapping[str, float | None], where: str, bad: dict[str, str]) -> dict[str, float | None]:
    """Return the numbers with None for those that JSON cannot hold, which are added to `bad` as `where.name`."""
    result = dict(numbers)
    if not all_finite(result.values()):
        for name, x in result.items():
            if x is not None and not math.isfinite(x):
                result[name] = None
                bad[f"{where}.{name}" if where else name] = spelled(x)
    return result


def all_finite(numbers: Iterable[float | None]) -> bool:
    """Return whether all numbers are finite; also False if one is None.

    One sum is faster than a test per number, and NaN and infinity survive addition.
    """
    try:
        return math.isfinite(sum(cast(Iterable[float], numbers)))
    except TypeError:
        return False


def evaluation_fields(
    returns: Sequence[float], lengths: Sequence[int], successes: Sequence[bool | None]
) -> dict[str, Any]:
    """Return the fields of an `EvaluationRecord` that are computed from its episodes, `nonfinite` included."""
    known = [bool(s) for s in successes if s is not None]
    bad: dict[str, str] = {}
    values = np.asarray(returns, np.float64)
    with np.errstate(invalid="ignore"):  # inf - inf is NaN, and recorded as such
        numbers = {"mean": values.mean(), "std": values.std(), "min": values.min(), "max": values.max()}
    stats = finite({name: float(x) for name, x in numbers.items()}, "return", bad)
    each = finite({str(i): float(r) for i, r in enumerate(returns)}, "returns", bad)
    return {f"return_{name}": x for name, x in stats.items()} | {
        "episodes": len(returns),
        "length_mean": float(np.mean(lengths)),
        "returns": list(each.values()),
        "lengths": [int(n) for n in lengths],
        "success_rate": sum(known) / len(known) if known else None,
        "nonfinite": bad,
    }


def plain_json(value: Mapping[str, Any], where: str, bad: dict[str, str]) -> dict[str, Any]:
    """Return `value` as JSON values, with None for non-finite numbers at any depth, which are added to `bad`."""

    def walk(x: Any, where: str) -> Any:
        if isinstance(x, dict):
            return {k: walk(v, f"{where}.{k}") for k, v in cast(dict[str, Any], x).items()}
        if isinstance(x, list | tuple):
            return [walk(v, f"{where}.{i}") for i, v in enumerate(cast(list[Any], x))]
        if isinstance(x, float) and not math.isfinite(x):
            bad[where] = spelled(x)
            return None
        return x

    return walk(msgspec.to_builtins(dict(value), str_keys=True, enc_hook=plain), where)


def plain(x: Any) -> Any:
    """Return a JSON value for a type unknown to msgspec: numpy's as numbers and lists, others as text."""
    return cast(Any, x).tolist() if isinstance(x, np.generic | np.ndarray) else str(x)


def spelled(x: float) -> str:
    """Return the text for a number that JSON cannot hold: "nan", "inf" or "-inf"."""
    return "nan" if math.isnan(x) else "inf" if x > 0 else "-inf"
