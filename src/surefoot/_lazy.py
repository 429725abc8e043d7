"""Public names of a package that are imported on first use, so that `import surefoot` stays fast."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for `package`, and set its `__all__`.

    `modules` maps each public name to the submodule that defines it. Type checkers do not see these names; repeat them as
    imports under `TYPE_CHECKING`.
    """
    namespace = vars(sys.modules[package])
    namespace["__all__"] = sorted(modules)

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{modules[name]}"), name)
        namespace[name] = value
        return value

    return load, lambda: sorted(modules)
