"""The C kernel (acting, learning, stepping built-in worlds) and its binding. Absent if it was not compiled."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["include_dir", "instruction_set", "kernel", "unusable", "why_not"]

why_not = ""
"""Why `kernel`, the compiled module, is None; empty if it is not."""
try:
    if os.environ.get("SUREFOOT_NATIVE", "1") == "0":
        raise ImportError("SUREFOOT_NATIVE=0 turns it off")
    import surefoot.native._kernel as kernel
except ModuleNotFoundError:
    kernel = None
    why_not = "the kernel was not built; install surefoot again where there is GCC or Clang"
except ImportError as error:
    kernel = None
    why_not = f"the kernel is not there ({error})"


def instruction_set() -> str:
    """Which of the kernel's copies is used: the one that `SUREFOOT_KERNEL` names, or the machine's best."""
    named = os.environ.get("SUREFOOT_KERNEL", "auto")
    return named if named != "auto" or kernel is None else kernel.instruction_sets()[0]


def unusable() -> str | None:
    """Why the kernel cannot be used on this machine now; None if it can."""
    if kernel is None:
        return why_not
    named, there = instruction_set(), kernel.instruction_sets()
    return None if named in there else f"SUREFOOT_KERNEL is {named!r} but this machine has {', '.join(there)}"


def include_dir() -> Path:
    """Where `surefoot_env.h` is, for worlds written in C."""
    return Path(__file__).parent / "include"
