"""Numbers that JSON can hold: what is not finite becomes null and is named, so that nothing is hidden."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec
import numpy as np

from surefoot.telemetry.schema import Episodes


def finite(numbers: Mapping[str, float | None], where: str, bad: dict[str, str]) -> dict[str, float | None]:
    """The numbers, those that JSON cannot hold set to None and named in `bad` as `where.name`."""
    if all_finite(numbers.values()):
        return dict(numbers)
    plain: dict[str, float | None] = {}
    for name, x in numbers.items():
        if x is None or math.isfinite(x):
            plain[name] = x
        else:
            plain[name] = None
            bad[f"{where}.{name}" if where else name] = spelled(x)
    return plain


def finite_rows(
    rows: Sequence[Mapping[str, float | None]], where: str, bad: dict[str, str]
) -> list[dict[str, float | None]]:
    """Each row made `finite`, named in `bad` by its number."""
    if all(all_finite(row.values()) for row in rows):
        return [dict(row) for row in rows]
    return [finite(row, f"{where}.{i}", bad) for i, row in enumerate(rows)]


def finite_episodes(episodes: Episodes, bad: dict[str, str]) -> Episodes:
    """The summary, its non-finite numbers set to None and named in `bad`."""
    if all_finite(numbers_of(episodes)):
        return episodes
    numbers = msgspec.structs.asdict(episodes)
    count = numbers.pop("count")
    return Episodes(count=count, **finite(numbers, "episodes", bad))


def numbers_of(episodes: Episodes) -> tuple[float | None, ...]:
    """What of a summary may fail to be finite; `success_rate`, which is often None and never infinite, is no part."""
    return episodes.return_mean, episodes.return_min, episodes.return_max, episodes.length_mean


def all_finite(numbers: Iterable[float | None]) -> bool:
    """One sum instead of a test a number: NaN and infinity survive addition. False may also mean that one is None."""
    try:
        return math.isfinite(sum(cast(Iterable[float], numbers)))
    except TypeError:
        return False


def plain_json(value: Mapping[str, Any], where: str, bad: dict[str, str]) -> dict[str, Any]:
    """`value` as plain JSON values, non-finite numbers at any depth set to None and named in `bad`."""

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
    """JSON for what msgspec does not know: numpy's numbers and arrays as numbers and lists, the rest as text."""
    if isinstance(x, np.generic | np.ndarray):
        return cast(Any, x).tolist()
    return str(x)


def spelled(x: float) -> str:
    """How a record names a number that JSON cannot hold."""
    if math.isnan(x):
        return "nan"
    return "inf" if x > 0 else "-inf"
