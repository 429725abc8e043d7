"""Old module paths that the documentation mentioned. They work for one more release, with a DeprecationWarning."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

MOVED = {
    "surefoot.cli.harness": "surefoot.compat.townlet",
    "surefoot.decide.prompts.trainer": "surefoot.compat.directive023.trainer",
    "surefoot.envs.choir": "surefoot.envs.builtin.multi_agent_toys",
    "surefoot.envs.connect": "surefoot.envs.builtin.connect_four",
    "surefoot.envs.maze": "surefoot.envs.builtin.maze",
    "surefoot.envs.pettingzoo": "surefoot.envs.agents.pettingzoo",
    "surefoot.envs.seats": "surefoot.envs.agents.two_player",
    "surefoot.learn.search": "surefoot.learn.search_ranges",
    "surefoot.lm.tiny": "surefoot.lm.policy.tiny",
    "surefoot.lm.trainer": "surefoot.compat.constitutional_ai.trainer",
    "surefoot.scale.check": "surefoot.scale.backend_check",
    "surefoot.telemetry.read": "surefoot.telemetry.reader",
    "surefoot.telemetry.signs": "surefoot.telemetry.doctor.signals",
    "surefoot.telemetry.view": "surefoot.telemetry.export.page",
    "surefoot.town.env": "surefoot.town.sim.parallel_env",
    "surefoot.town.loop": "surefoot.town.sim.town_loop",
    "surefoot.town.scenario": "surefoot.town.scenarios.scenario",
    "surefoot.train.clone": "surefoot.train.algorithms.clone",
    "surefoot.train.compat": "surefoot.train.interop.sb3_names",
    "surefoot.train.curiosity": "surefoot.train.algorithms.curiosity",
    "surefoot.train.hierarchy": "surefoot.train.algorithms.hierarchy",
    "surefoot.train.minari": "surefoot.train.interop.minari",
    "surefoot.train.opponents": "surefoot.train.algorithms.opponents",
    "surefoot.train.recording": "surefoot.train.interop.recording",
    "surefoot.train.reward": "surefoot.train.collect.reward",
    "surefoot.train.selfplay": "surefoot.train.algorithms.selfplay",
    "surefoot.train.statistics": "surefoot.train.diagnose.statistics",
}

MOVED_NAMES = {"surefoot.decide.tools": "surefoot.compat.hololoom"}
"""Packages whose former public names are in another module now."""


def warn_moved(old: str, new: str, stacklevel: int = 3) -> None:
    """Emit the one-line notice that `old` is now `new`."""
    text = f"{old} is now {new}; the old path will be removed in the next release"
    warnings.warn(text, DeprecationWarning, stacklevel=stacklevel)


class MovedFinder(MetaPathFinder, Loader):
    """Import the new module under its old path. Used last, and only for the paths in `MOVED`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname in MOVED else None

    def exec_module(self, module: ModuleType) -> None:
        old = module.__name__
        warn_moved(old, MOVED[old])
        # The import system returns the entry of sys.modules after this call: the same module object for both paths.
        sys.modules[old] = import_module(MOVED[old])


def moved_names(package: str, module: str | None = None) -> Callable[[str], Any]:
    """Return a `__getattr__` for a package whose old names are in `module`, or in the module of `MOVED_NAMES`."""
    module = module or MOVED_NAMES[package]

    def load(name: str) -> Any:
        if name.startswith("__") or not hasattr(import_module(module), name):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        warn_moved(f"{package}.{name}", f"{module}.{name}", stacklevel=4)
        return getattr(import_module(module), name)

    return load
