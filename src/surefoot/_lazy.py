"""Public names of a package that are imported on first use, so that `import surefoot` stays fast."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

# A re-export as type checkers read it, in the block under TYPE_CHECKING. At run time only this pattern does.
_REEXPORT = re.compile(r"^    from (\S+) import (\w+) as \2$", re.MULTILINE)


def lazy_names(
    package: str, modules: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for `package`, and set its `__all__`.

    `modules` maps each public name to the module that defines it; by default these are the imports of the form
    `from module import name as name` under `TYPE_CHECKING` in the source of the package.
    """
    namespace = vars(sys.modules[package])
    if modules is None:
        source = namespace["__spec__"].loader.get_source(package)
        modules = {name: module for module, name in _REEXPORT.findall(source)}
    namespace["__all__"] = sorted(modules)

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(modules[name]), name)
        namespace[name] = value
        return value

    return load, lambda: sorted(modules)
