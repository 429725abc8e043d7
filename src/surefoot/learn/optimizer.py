"""The optimiser a config asks for."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

from surefoot.learn.config import PPOConfig


def make_optimizer(parameters: Iterable[nn.Parameter], config: PPOConfig) -> torch.optim.Optimizer:
    """Adam, AdamW, SGD or RMSprop; the learning rate is set before every update."""
    trained = [p for p in parameters if p.requires_grad]
    # The fused kernels take all tensors in one call: at PPO's sizes an optimiser step is call overhead.
    match config.optimizer:
        case "adam":
            return torch.optim.Adam(trained, lr=1.0, eps=config.adam_eps, weight_decay=config.weight_decay, fused=True)
        case "adamw":
            return torch.optim.AdamW(trained, lr=1.0, eps=config.adam_eps, weight_decay=config.weight_decay, fused=True)
        case "sgd":
            return torch.optim.SGD(
                trained, lr=1.0, momentum=config.momentum, weight_decay=config.weight_decay, fused=True
            )
        case _:
            assert config.optimizer == "rmsprop", config.optimizer
            return torch.optim.RMSprop(
                trained, lr=1.0, eps=config.adam_eps, momentum=config.momentum, weight_decay=config.weight_decay
            )


def set_learning_rate(optimizer: torch.optim.Optimizer, lr: float) -> None:
    """The same rate for every group."""
    for group in optimizer.param_groups:
        group["lr"] = lr


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    """The optimiser's memory as named tensors: {"<index>.<name>": tensor}."""
    state = optimizer.state_dict()["state"]
    return {f"{index}/{name}": torch.as_tensor(x) for index, slots in state.items() for name, x in slots.items()}


def load_optimizer_tensors(optimizer: torch.optim.Optimizer, tensors: dict[str, torch.Tensor]) -> None:
    """Put back what `optimizer_tensors` took."""
    state: dict[int, dict[str, torch.Tensor]] = {}
    for key, tensor in tensors.items():
        index, name = key.split("/", 1)
        state.setdefault(int(index), {})[name] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
