"""World makers for an ENV that a user names: an id, or `module:function` or `./library.so` for code of the user's.

These functions import and load the code that a name refers to. What is read from a run's files must not name code: for
specs from files use `spec_worlds.world_maker`.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any, cast

import gymnasium

from surefoot.envs.api import World
from surefoot.envs.ids import is_library
from surefoot.envs.make import SingleEnv, make_streams
from surefoot.envs.workers.placement import Workers
from surefoot.errors import UnknownEnv
from surefoot.train.spec import Backend, RunSpec
from surefoot.train.spec_worlds import WorldMaker

ROOMS = {"town/": "surefoot.town.worlds"}
"""Prefixes of ids whose worlds a higher room makes, and its module. It is imported by name at first use, so that this
room does not depend on it; it has `env_maker(env, env_kwargs)` and `single_env(env)`."""


def env_maker(env: str, *, backend: Backend = "auto", env_kwargs: dict[str, Any] | None = None) -> WorldMaker:
    """Return a function that makes the world `env` with any number of streams and workers."""
    if room := _room(env):
        return room.env_maker(env, env_kwargs)
    source: Any = env
    options: dict[str, Any] = {"env_kwargs": env_kwargs}
    if is_library(env):
        options |= {"backend": backend, "allow_import": True}
    elif ":" not in env:
        options["backend"] = backend
    elif callable(function := _user_object(env)):
        source, options = cast(Callable[[], SingleEnv], partial(function, **(env_kwargs or {}))), {}
    else:
        options["allow_import"] = True

    def make(streams: int, workers: Workers = 0, /) -> World:
        return make_streams(source, streams, workers=workers, **options)

    return make


def spec_maker(spec: RunSpec) -> WorldMaker:
    """Return the maker of a spec's worlds. Rollout workers call it by its dotted name."""
    return env_maker(spec.env, backend=spec.backend, env_kwargs=spec.env_kwargs or None)


def policy_maker(name: str) -> Callable[[World], Any]:
    """Return the function `module:function`, which builds a policy for a world."""
    if ":" not in name:
        raise UnknownEnv(f"{name!r} is no policy; give module:function, a function from a world to a policy")
    function = _user_object(name)
    if not callable(function):
        raise UnknownEnv(f"{name!r} is no function; give module:function, a function from a world to a policy")
    return cast(Callable[[World], Any], function)


def single_env(env: str) -> Any:
    """Return one env as its author wrote it, for `check_env`: an id, the object that `module:name` names, or a world.

    The module of `module:Id-v0` is imported, so that the id exists.
    """
    if room := _room(env):
        return room.single_env(env)
    if is_library(env):
        from surefoot.envs.register import WorldEnv

        return WorldEnv(env_maker(env)(1))
    if ":" not in env:
        return env
    found = _user_object(env)
    return env.partition(":")[2] if found is None else found


def _room(env: str) -> ModuleType | None:
    return next((importlib.import_module(name) for prefix, name in ROOMS.items() if env.startswith(prefix)), None)


def _user_object(env: str) -> Any:
    """Return what `module:name` names in its module; None for an id that importing the module registers."""
    module_name, _, name = env.partition(":")
    try:
        module = import_user_module(module_name)
    except ImportError as why:
        raise UnknownEnv(f"cannot import {module_name!r} of {env!r} ({why}); ENV is an id or module:function") from why
    function: Any = getattr(module, name, None)
    if function is None and name not in gymnasium.registry:
        raise UnknownEnv(f"{module_name!r} has no {name!r}; ENV is an id or module:function")
    return function


def import_user_module(name: str) -> ModuleType:
    """Import a module of the user's from the current directory or the path."""
    # A console script has its own directory on the path, not the one the user works in.
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    return importlib.import_module(name)
