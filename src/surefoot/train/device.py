"""Compute resources of this process: device, number of threads, memory allocator."""

from __future__ import annotations

import ctypes
import os
import sys

import torch
from torch import nn

from surefoot.errors import ConfigError

# Parameter numbers of glibc's mallopt, from malloc.h.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
# glibc's maximum for the mmap threshold on 64-bit systems (DEFAULT_MMAP_THRESHOLD_MAX).
_LARGEST = 32 * 2**20


def choose_device(name: str) -> torch.device:
    """Return the device that a config names; "auto" is a GPU if one is available."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    device = torch.device(name)
    missing = (device.type == "cuda" and not torch.cuda.is_available()) or (
        device.type == "mps" and not torch.backends.mps.is_available()
    )
    if missing:
        raise ConfigError(f"device is {name!r} but torch finds none on this machine; use device='auto'")
    return device


def pin_threads(count: int | None = None) -> str:
    """Use `count` threads in this process from now on, and return a text for the log.

    By default $SUREFOOT_THREADS, which `--threads` sets, or one: at PPO's sizes a second OpenMP thread waits more than it
    works, and digits depend on the count.
    """
    if count is None:
        text = os.environ.get("SUREFOOT_THREADS") or "1"
        if not text.isdigit():
            raise ConfigError(f"SUREFOOT_THREADS is {text!r}; it must be a number, at least 1")
        count = int(text)
    if count < 1:
        raise ConfigError(f"threads is {count}; it must be at least 1")
    if torch.get_num_threads() != count:
        torch.set_num_threads(count)
    return f"{count} thread{'s' if count > 1 else ''}"


def keep_large_blocks(policy: object) -> bool:
    """Let glibc's malloc reuse large blocks if the policy has convolutions on the CPU. Return whether it does.

    A minibatch of images allocates and frees tens of megabytes per layer. By default each block is mapped and cleared by
    the operating system again, which takes a tenth of the time of an update.
    """
    modules = policy.modules() if isinstance(policy, nn.Module) else ()
    if not any(isinstance(x, nn.Conv2d) and x.weight.device == torch.device("cpu") for x in modules):
        return False
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt if sys.platform == "linux" else None
    # Another libc, such as musl, has no file of this name or no mallopt.
    except (OSError, AttributeError):
        mallopt = None
    if mallopt is None:
        return False
    # 1 GiB stays with the process before memory is returned; the heap grows by two of the largest blocks at a time.
    settings = ((_MMAP_THRESHOLD, _LARGEST), (_TRIM_THRESHOLD, 2**30), (_TOP_PAD, 2 * _LARGEST))
    return sum(mallopt(which, size) for which, size in settings) == len(settings)
