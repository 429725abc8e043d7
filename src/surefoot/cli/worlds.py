"""From what was typed as ENV to a world: an id, or `module:function` or `./library.so` for one of the user's own."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import gymnasium

from surefoot.envs.api import World
from surefoot.envs.ids import is_library
from surefoot.envs.make import SingleEnv, make_streams
from surefoot.errors import ConfigError, UnknownEnv
from surefoot.train.spec import Backend, RunSpec

if TYPE_CHECKING:
    from surefoot.envs.workers.placement import Workers
    from surefoot.train.training import WorldMaker

TOWN = "town/"
"""What the names of towns begin with: town/queue_conflict."""


def maker(env: str, *, backend: Backend = "auto", env_kwargs: dict[str, Any] | None = None) -> WorldMaker:
    """What makes the world that was asked for, with any number of streams and workers.

    Only the command line may name code: `module:function` is imported from the current directory or the path, and
    `./library.so` is loaded.
    """
    if env.startswith(TOWN):
        return town_maker(env, env_kwargs)
    made_of: Any = env
    options: dict[str, Any] = {"env_kwargs": env_kwargs}
    if is_library(env):
        options |= {"backend": backend, "allow_import": True}
    elif ":" not in env:
        options["backend"] = backend
    elif callable(function := _named(env)):
        made_of, options = cast(Callable[[], SingleEnv], partial(function, **(env_kwargs or {}))), {}
    else:
        options["allow_import"] = True

    def make(streams: int, workers: Workers = 0, /) -> World:
        return make_streams(made_of, streams, workers=workers, **options)

    return make


def maker_of(spec: RunSpec) -> WorldMaker:
    """What makes a run's worlds in another process, which the command line started."""
    return maker(spec.env, backend=spec.backend, env_kwargs=spec.env_kwargs or None)


def town_maker(env: str, env_kwargs: dict[str, Any] | None = None) -> WorldMaker:
    """Worlds of a town: a shipped scenario, or the one that `env_kwargs` holds whole, so that a run needs no other file.

    `streams` counts agents; as many towns as they fill are made, at least one.
    """
    from surefoot.town.scenarios.scenario import Scenario, load_scenario
    from surefoot.town.sim.world import TownWorld

    options = dict(env_kwargs or {})
    described = options.pop("scenario", None)
    scenario = load_scenario(env.removeprefix(TOWN)) if described is None else Scenario.from_json(described)
    known = {name: options.pop(name) for name in ("variant", "central") if name in options}
    if options:
        raise ConfigError(f"a town takes scenario, variant and central; not {', '.join(options)}")

    def make(streams: int, workers: Workers = 0, /) -> World:
        return TownWorld(scenario, max(1, streams // len(scenario.agents)), name=env, **known)

    return make


def _named(env: str) -> Any:
    """What `module:name` names in its module; None for an id that importing the module registers."""
    module_name, _, name = env.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ImportError as why:
        raise UnknownEnv(f"cannot import {module_name!r} of {env!r} ({why}); ENV is an id or module:function") from why
    function: Any = getattr(module, name, None)
    if function is None and name not in gymnasium.registry:
        raise UnknownEnv(f"{module_name!r} has no {name!r}; ENV is an id or module:function")
    return function


def policy_maker(name: str) -> Callable[[World], Any]:
    """The function `module:function` that builds a policy for a world; only the command line may name one."""
    if ":" not in name:
        raise UnknownEnv(f"{name!r} is no policy; give module:function, a function from a world to a policy")
    function = _named(name)
    if not callable(function):
        raise UnknownEnv(f"{name!r} is no function; give module:function, a function from a world to a policy")
    return cast(Callable[[World], Any], function)


def single_env(env: str) -> Any:
    """One env as its author wrote it, for looking at: an id, what `module:function` returns, or a world in C."""
    if env.startswith(TOWN):
        from surefoot.town.sim.parallel_env import TownEnv

        return TownEnv(env.removeprefix(TOWN))
    if is_library(env):
        from surefoot.envs.register import WorldEnv

        return WorldEnv(maker(env)(1))
    if ":" not in env:
        return env
    module_name, _, name = env.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return getattr(importlib.import_module(module_name), name)
    except (ImportError, AttributeError) as why:
        raise UnknownEnv(f"cannot get {name!r} from {module_name!r} ({why}); ENV is an id or module:function") from why
