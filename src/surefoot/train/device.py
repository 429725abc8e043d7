"""Where the arithmetic happens, and on how many threads."""

from __future__ import annotations

import torch

from surefoot.errors import ConfigError


def choose_device(name: str) -> torch.device:
    """The device a config names; "auto" takes a GPU if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    device = torch.device(name)
    missing = (device.type == "cuda" and not torch.cuda.is_available()) or (
        device.type == "mps" and not torch.backends.mps.is_available()
    )
    if missing:
        raise ConfigError(f"device is {name!r} but torch finds none here; device='auto' takes what there is")
    return device


def pin_threads(count: int = 1) -> str:
    """Use `count` threads in this process from now on; a sentence that says so.

    One by default: at PPO's sizes a second OpenMP thread waits more than it works, and digits depend on the count.
    """
    if count < 1:
        raise ConfigError(f"threads is {count}; it must be at least 1")
    if torch.get_num_threads() != count:
        torch.set_num_threads(count)
    return f"{count} thread{'s' if count > 1 else ''}"
