"""The kernel: acting, learning and stepping worlds in C, on plain buffers. Without a compiler it is not there."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["include_dir", "kernel", "why_not"]

why_not = ""
"""Why `kernel`, the compiled module, is None; empty if it is not."""
try:
    if os.environ.get("SUREFOOT_NATIVE", "1") == "0":
        raise ImportError("SUREFOOT_NATIVE=0 turns it off")
    from surefoot.native import _kernel as kernel
except ImportError as error:
    kernel = None
    why_not = f"the kernel is not there ({error})"


def include_dir() -> Path:
    """Where `surefoot_env.h` is, for worlds written in C."""
    return Path(__file__).parent / "include"
