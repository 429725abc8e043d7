"""Tables of words and expressions that are shipped as YAML files beside the modules that use them."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import yaml


def read_shipped(room: str, name: str) -> Any:
    """Return the content of a YAML file in `surefoot.decide.{room}`."""
    return yaml.safe_load((files(f"surefoot.decide.{room}") / name).read_text(encoding="utf-8"))
