"""The names of PPO's settings in other libraries; `aliases.yaml` holds the table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surefoot.data.kinds import boolean
from surefoot.data.knobs import Vocabulary, require_known
from surefoot.data.shipped_yaml import read_shipped
from surefoot.errors import ConfigError
from surefoot.learn.schedule import Linear
from surefoot.learn.schedule_text import parse_schedule
from surefoot.nets.config import NET_HINTS, NET_NAMES


def _boolean(name: str, value: Any) -> bool:
    try:
        return boolean(value)
    except (TypeError, ValueError):
        raise ConfigError(f"{name} is {value!r}; it must be true or false") from None


def _per_minibatch(value: Any) -> dict[str, Any]:
    # False does not turn rsl_rl's normalisation off: it is then done once over the batch.
    return {"normalize_advantage": "minibatch" if _boolean("normalize_advantage_per_mini_batch", value) else "batch"}


_TABLE = read_shipped("surefoot.learn", "aliases.yaml")
PPO_NAMES = Vocabulary(
    knobs={knob: tuple(names) for knob, names in _TABLE["knobs"].items()},
    meanings={
        # skrl and rl_games: 0 means that an update never stops early.
        "kl_threshold": lambda value: {"target_kl": None if value in (0, "0", "0.0") else value},
        "normalize_advantage_per_mini_batch": _per_minibatch,
    },
    former={"steps": "rollout_steps"},
)
PPO_HINTS: dict[str, str] = _TABLE["hints"]


def canonical(names: Mapping[str, Any], base: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return `names` by the names of PPOConfig's settings.

    CleanRL's `anneal_lr` makes the learning rate fall to 0 in a line, its `clip_vloss` sets `value_clip` to `clip` (False:
    to None). If `lr` or `clip` is not among `names`, it is taken from `base`, the current values. Without either, the two
    stay in the result unchanged, for the next call that has a base.
    """
    elsewhere = dict.fromkeys(NET_NAMES.names(), "it belongs to NetConfig, not to PPOConfig")
    # Both sets of names first, so that a misspelt network setting is recognised; then those of the network are refused.
    require_known(names, PPO_NAMES.names() | NET_NAMES.names(), PPO_HINTS | NET_HINTS)
    require_known(names, PPO_NAMES.names(), elsewhere)
    result = PPO_NAMES.translate(names)
    values = {**(base or {}), **result}
    if "anneal_lr" in result and "lr" in values and _boolean("anneal_lr", result.pop("anneal_lr")):
        start = parse_schedule(values["lr"])
        if not isinstance(start, float):
            raise ConfigError(f"anneal_lr is set but lr already follows a schedule, {start}; drop one of them")
        result["lr"] = Linear(start)
    if "clip_vloss" in result and "clip" in values:
        if not _boolean("clip_vloss", result.pop("clip_vloss")):
            result["value_clip"] = None
        elif "value_clip" not in result:
            bound = parse_schedule(values["clip"])
            if not isinstance(bound, float):
                raise ConfigError(f"clip_vloss is set but clip follows a schedule, {bound}; set value_clip to a number")
            result["value_clip"] = bound
    return result
