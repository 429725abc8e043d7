"""The kernel: acting, learning and stepping worlds in C, on plain buffers. Without a compiler it is not there."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType


def _load() -> tuple[ModuleType | None, str]:
    if os.environ.get("SUREFOOT_NATIVE", "1") == "0":
        return None, "SUREFOOT_NATIVE=0 turns the kernel off"
    try:
        from surefoot.native import _kernel
    except ImportError as why:
        return None, f"the kernel was not built when surefoot was installed ({why})"
    return _kernel, ""


kernel, why_not = _load()
"""The compiled module, or None and a sentence that says why there is none."""


def include_dir() -> Path:
    """Where `surefoot_env.h` is, for worlds written in C."""
    return Path(__file__).parent / "include"
