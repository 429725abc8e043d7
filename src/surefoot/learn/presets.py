"""Named sets of settings, general or tuned for a family of environments; `presets.yaml` holds their values."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from importlib import import_module
from typing import Any

from surefoot.data.shipped_yaml import read_shipped
from surefoot.errors import ConfigError
from surefoot.learn.schedule_text import parse_schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """Values for the three configs, by their canonical names; a setting that is not listed keeps its default."""

    name: str
    summary: str
    ppo: dict[str, Any] = field(default_factory=dict[str, Any])
    net: dict[str, Any] = field(default_factory=dict[str, Any])
    collect: dict[str, Any] = field(default_factory=dict[str, Any])
    total_steps: int | None = None
    """Environment steps to train for by default, if the preset has a default."""


def _read_presets() -> tuple[dict[str, Preset], tuple[tuple[str, str], ...]]:
    """Return the presets and families of `presets.yaml`, where tuples are lists and schedules are text."""

    def value(x: Any) -> Any:
        return tuple(x) if isinstance(x, list) else parse_schedule(x) if str(x).startswith("lin_") else x

    content = read_shipped("surefoot.learn", "presets.yaml")
    presets: dict[str, Preset] = {}
    for name, entry in content["presets"].items():
        groups = {
            group: {key: value(x) for key, x in entry.get(group, {}).items()} for group in ("ppo", "net", "collect")
        }
        presets[name] = Preset(name=name, summary=entry["summary"], total_steps=entry.get("total_steps"), **groups)
    return presets, tuple(content["families"].items())


PRESETS, FAMILIES = _read_presets()
"""Presets by name, and (pattern of an env id, preset), of which the first match counts."""

# A module with a tuple `PRESETS` of further presets. It is imported by name, and only if a name is not found here, so that
# `learn` does not depend on `compat`.
MORE = "surefoot.compat.presets"


def all_presets() -> dict[str, Preset]:
    """Return the presets of this module, then those of `MORE`."""
    return PRESETS | {entry.name: entry for entry in import_module(MORE).PRESETS}


def preset(name: str) -> Preset:
    """Return the preset of that name. Raise `ConfigError` if there is none."""
    # The usual names do not import `compat`.
    if name in PRESETS:
        return PRESETS[name]
    presets = all_presets()
    if name not in presets:
        close = difflib.get_close_matches(name, presets, n=2)
        advice = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(presets)}"
        raise ConfigError(f"no preset is called {name!r}; {advice}")
    return presets[name]


def family_preset(env_id: str, *, continuous: bool = False) -> str:
    """Return the name of the preset for environments like `env_id`; `continuous` decides for those of no family."""
    # The last pattern matches everything.
    name = next(name for pattern, name in FAMILIES if fnmatchcase(env_id, pattern))
    return "default-continuous" if continuous and name == "default-discrete" else name
