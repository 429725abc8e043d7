"""The kernel: acting, learning and stepping worlds in C, on plain buffers. Without a compiler it is not there."""

from __future__ import annotations

import os
from pathlib import Path

try:
    if os.environ.get("SUREFOOT_NATIVE", "1") == "0":
        raise ImportError("SUREFOOT_NATIVE=0 turns it off")
    from surefoot.native import _kernel as _built
except ImportError as error:
    kernel, why_not = None, f"the kernel is not there ({error})"
else:
    kernel, why_not = _built, ""
"""The compiled module, or None and a sentence that says why there is none."""


def include_dir() -> Path:
    """Where `surefoot_env.h` is, for worlds written in C."""
    return Path(__file__).parent / "include"
