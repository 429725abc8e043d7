"""The C kernel (acting, learning, stepping built-in environments) and its binding; `kernel` is None if it was not compiled."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["include_dir", "instruction_set", "kernel", "unusable", "why_not"]

why_not = ""
"""Why `kernel`, the compiled module, is None; empty if the kernel is loaded."""
try:
    if os.environ.get("SUREFOOT_NATIVE", "1") == "0":
        raise ImportError("SUREFOOT_NATIVE=0 turns it off")
    import surefoot.native._kernel as kernel
except ModuleNotFoundError:
    kernel = None
    why_not = "the kernel was not built; install surefoot again on a machine with GCC or Clang"
except ImportError as error:
    kernel = None
    why_not = f"the kernel could not be loaded ({error})"


def instruction_set() -> str:
    """Return the instruction set in use: the one that `SUREFOOT_KERNEL` names, or the machine's best."""
    named = os.environ.get("SUREFOOT_KERNEL") or "auto"  # set but empty is not set
    return named if named != "auto" or kernel is None else kernel.instruction_sets()[0]


def unusable() -> str | None:
    """Return why the kernel cannot be used on this machine; None if it can."""
    if kernel is None:
        return why_not
    named, available = instruction_set(), kernel.instruction_sets()
    return None if named in available else f"SUREFOOT_KERNEL is {named!r} but this machine has {', '.join(available)}"


def include_dir() -> Path:
    """Return the folder of `surefoot_env.h`, for environments written in C."""
    return Path(__file__).parent / "include"
