"""YAML files that ship with the package, beside the modules that read them."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import yaml

# libyaml parses in a tenth of the time, and commands read these files at every start; both loaders build plain values only.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_shipped(package: str, name: str) -> Any:
    """Return the content of the YAML file `name` in `package`."""
    loader = _LOADER((files(package) / name).read_text(encoding="utf-8"))
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()
