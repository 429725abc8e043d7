"""What an env's id names: something that is registered, or code, which only the user may name."""

from __future__ import annotations

import os

_LIBRARY = (".so", ".dylib")


def is_library(env: str) -> bool:
    """True for a world in C, a path such as ./my_world.so; it must have a separator in it."""
    return env.endswith(_LIBRARY) and ("/" in env or os.sep in env)


def is_code(env: str) -> bool:
    """True if making it runs code of the user's: `module:function`, `module:Id-v0` or a world in C."""
    return ":" in env or is_library(env)


def short_name(env: str) -> str:
    """As runs are called after it: the id, or a library's file name without its ending."""
    return os.path.splitext(os.path.basename(env))[0] if is_library(env) else env
