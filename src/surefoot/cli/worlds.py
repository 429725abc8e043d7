"""From what was typed as ENV to a world: an id, or `module:function` or `./library.so` for one of the user's own."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import gymnasium

from surefoot.envs.api import World
from surefoot.envs.ids import is_library
from surefoot.envs.make import SingleEnv, make_world
from surefoot.errors import UnknownEnv
from surefoot.train.spec import Backend


def maker(env: str, *, backend: Backend = "auto", env_kwargs: dict[str, Any] | None = None) -> Callable[[int], World]:
    """What makes the world that was asked for, with any number of streams.

    Only the command line may name code: `module:function` is imported from the current directory or the path, and
    `./library.so` is loaded.
    """
    if is_library(env):
        return lambda streams: make_world(env, streams, backend=backend, env_kwargs=env_kwargs, allow_import=True)
    if ":" not in env:
        return lambda streams: make_world(env, streams, backend=backend, env_kwargs=env_kwargs)
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
    if callable(function):
        build = cast(Callable[[], SingleEnv], partial(function, **(env_kwargs or {})))
        return lambda streams: make_world(build, streams)
    return lambda streams: make_world(env, streams, env_kwargs=env_kwargs, allow_import=True)


def single_env(env: str) -> Any:
    """One env as its author wrote it, for looking at: an id, what `module:function` returns, or a world in C."""
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
