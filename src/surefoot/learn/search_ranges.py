"""The ranges of settings that `surefoot tune` searches."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from surefoot.data.kinds import as_list, as_mapping, boolean, number, whole_number
from surefoot.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from `low` to `high`, on a log scale if `log`, integers if `whole`."""

    low: float
    high: float
    log: bool = False
    whole: bool = False

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ConfigError(f"a range has low {self.low:g} and high {self.high:g}; low must be below high")
        if self.log and self.low <= 0:
            raise ConfigError(f"a range with log has low {self.low:g}; it must be above 0")

    def with_value(self, value: Any) -> Range:
        """Return this range, widened to contain `value` if possible."""
        if self.log and float(value) <= 0:
            return self
        return Range(min(self.low, float(value)), max(self.high, float(value)), self.log, self.whole)

    def to_json(self) -> dict[str, Any]:
        return {"low": self.low, "high": self.high, "log": self.log, "whole": self.whole}


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few values."""

    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        if len(self.values) < 1:
            raise ConfigError("a choice has no values; pass at least one")

    def with_value(self, value: Any) -> Choice:
        """Return this choice, with `value` added if it is missing."""
        return self if label(value) in map(label, self.values) else Choice((*self.values, value))

    def to_json(self) -> list[Any]:
        return [list(value) if isinstance(value, tuple) else value for value in self.values]


Dimension = Range | Choice
Space = dict[str, Dimension]

# Wider ranges need more trials. `surefoot tune` widens a range if the starting value is outside of it.
SEARCH: Space = {
    "lr": Range(3e-5, 5e-3, log=True),
    "gamma": Choice((0.9, 0.95, 0.98, 0.99, 0.995, 0.999)),
    "lam": Choice((0.8, 0.9, 0.95, 0.98, 1.0)),
    "clip": Range(0.1, 0.4),
    "epochs": Range(3, 20, log=True, whole=True),
    "rollout_steps": Choice((32, 64, 128, 256, 512)),
    "envs": Choice((4, 8, 16)),
    "minibatch_size": Choice((32, 64, 128, 256)),
    "ent_coef": Range(1e-8, 0.05, log=True),
    "hidden": Choice(((64, 64), (128, 128))),
    "normalize_obs": Choice((False, True)),
    "normalize_reward": Choice((False, True)),
}
"""The ranges searched by default."""
SEARCH_CONTINUOUS: Space = {"log_std_init": Range(-2.0, 0.5)}
"""Additional ranges for continuous actions."""
# Settings that may change during a run: no saved array has another shape or meaning for it.
MOVING: frozenset[str] = frozenset(
    (
        *("lr", "gamma", "lam", "clip", "epochs", "rollout_steps", "minibatch_size", "ent_coef"),
        *("vf_coef", "max_grad_norm", "target_kl", "value_clip", "kl_coef", "dual_clip"),
    )
)
# Population-based training (Jaderberg 2017): resample with this probability, else multiply by one of the factors.
RESAMPLED, FACTORS = 0.25, (0.8, 1.2)


def label(value: Any) -> str:
    """Return a value as one string, the name of the choice in a study."""
    return json.dumps(list(value) if isinstance(value, tuple) else value, sort_keys=True)


def dimension(name: str, spec: Any) -> Dimension | None:
    """Return the range for {low: 1e-5, high: 1e-2, log: true} or a list of values; None for null: do not search."""
    if spec is None:
        return None
    values, fields = as_list(spec), as_mapping(spec)
    if values is not None:
        return Choice(tuple(tuple(value) if isinstance(value, list) else value for value in values))
    if fields is None or not {"low", "high"} <= set(fields) or set(fields) - {"low", "high", "log", "whole"}:
        raise ConfigError(
            f"the range of {name} is {spec!r}; write {{low: 1e-5, high: 1e-2, log: true}}, a list of values, or null"
        )
    try:
        low, high = (number(float(x) if isinstance(x, str) else x) for x in (fields["low"], fields["high"]))
        log, whole = boolean(fields.get("log", False)), boolean(fields.get("whole", False))
        if whole:
            low, high = whole_number(low), whole_number(high)
        return Range(low, high, log, whole)
    except (TypeError, ValueError) as why:
        raise ConfigError(f"the range of {name} is {spec!r}: {why}") from why


def changed(space: Mapping[str, Dimension], changes: Mapping[str, Any]) -> Space:
    """Return `space` with some ranges replaced, added or (null) removed."""
    new = {name: dimension(name, spec) for name, spec in changes.items()}
    return {name: dim for name, dim in {**space, **new}.items() if dim is not None}


def nearby(space: Space, params: Mapping[str, Any], names: Collection[str], rng: random.Random) -> dict[str, Any]:
    """Return `params` with those of `names` moved a little or resampled, always within their ranges."""
    return {
        name: _moved(space[name], value, rng) if name in names and name in space else value
        for name, value in params.items()
    }


def _moved(dim: Dimension, value: Any, rng: random.Random) -> Any:
    resample = rng.random() < RESAMPLED
    if isinstance(dim, Choice):
        labels = [label(each) for each in dim.values]
        if resample or label(value) not in labels:
            return rng.choice(dim.values)
        neighbour = labels.index(label(value)) + rng.choice((-1, 1))
        return dim.values[min(max(neighbour, 0), len(labels) - 1)]
    if resample:
        if dim.log:
            moved = math.exp(rng.uniform(math.log(dim.low), math.log(dim.high)))
        else:
            moved = rng.uniform(dim.low, dim.high)
    else:
        factor = rng.choice(FACTORS)
        moved = value * factor if dim.log else value + (factor - 1) * (dim.high - dim.low)
        # Small integers would be rounded back to where they were.
        if dim.whole and round(moved) == value:
            moved = value + (1 if factor > 1 else -1)
    moved = min(max(moved, dim.low), dim.high)
    return round(moved) if dim.whole else moved


def read_space(path: Path) -> dict[str, Any]:
    """Return the ranges in a YAML file by setting, unparsed; `changed` parses them."""
    try:
        loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as why:
        raise ConfigError(f"cannot read ranges from {path}: {' '.join(str(why).split())}") from why
    ranges = as_mapping(loaded)
    if not ranges:
        raise ConfigError(f"{path} has no ranges; write lr: {{low: 1e-5, high: 1e-2, log: true}}")
    return {str(name): spec for name, spec in ranges.items()}
