"""Kinds of environment ids: registered ids, and ids that run code, which only the user may pass."""

from __future__ import annotations

import os

_LIBRARY = (".so", ".dylib")


def is_library(env: str) -> bool:
    """Return whether `env` is the path of an environment in C, such as ./my_world.so; it must contain a separator."""
    return env.endswith(_LIBRARY) and ("/" in env or os.sep in env)


def is_code(env: str) -> bool:
    """Return whether making `env` runs the user's code: `module:function`, `module:Id-v0` or a library in C."""
    return ":" in env or is_library(env)


def short_name(env: str) -> str:
    """Return the name that runs get: the id, or a library's file name without its suffix."""
    return os.path.splitext(os.path.basename(env))[0] if is_library(env) else env
