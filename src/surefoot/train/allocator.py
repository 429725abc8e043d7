"""Large blocks of memory kept for the next layer instead of being handed back to the system after each."""

from __future__ import annotations

import ctypes
import sys

import torch
from torch import nn

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
_LARGEST = 32 * 2**20
"""glibc takes no larger threshold than this."""


def keep_large_blocks(policy: object) -> bool:
    """Tell glibc's malloc to, if the policy has convolutions on the CPU and there is a glibc; True if it was told.

    A minibatch of images makes and frees tens of megabytes a layer. By default each is mapped and cleared by the kernel
    of the system anew, which takes a tenth of the time of an update.
    """
    modules = policy.modules() if isinstance(policy, nn.Module) else ()
    if not any(isinstance(x, nn.Conv2d) and x.weight.device == torch.device("cpu") for x in modules):
        return False
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt if sys.platform == "linux" else None
    except (OSError, AttributeError):  # another libc
        mallopt = None
    if mallopt is None:
        return False
    settings = ((_MMAP_THRESHOLD, _LARGEST), (_TRIM_THRESHOLD, 2**30), (_TOP_PAD, 2 * _LARGEST))
    return sum(mallopt(which, size) for which, size in settings) == len(settings)
