"""`RMSpropTFLike`: RMSprop as TensorFlow has it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor


class RMSpropTFLike(torch.optim.Optimizer):
    """RMSprop whose average starts at 1 and whose `eps` is inside of the root; torch's starts at 0 and adds it outside."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
    ) -> None:
        numbers = {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum}
        for name, value in numbers.items():
            if value < 0:
                raise ValueError(f"{name} is {value}; it must not be negative")
        super().__init__(params, {**numbers, "centered": centered})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]  # torch's overloads
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._update(p, p.grad, group)
        return loss

    def _update(self, p: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        state, alpha = self.state[p], group["alpha"]
        if not state:
            state["square_avg"] = torch.ones_like(p)
            state["momentum_buffer"], state["grad_avg"] = torch.zeros_like(p), torch.zeros_like(p)
        if group["weight_decay"]:
            grad = grad.add(p, alpha=group["weight_decay"])
        variance = state["square_avg"].mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if group["centered"]:
            mean = state["grad_avg"].mul_(alpha).add_(grad, alpha=1 - alpha)
            variance = variance - mean**2
        step = grad / torch.sqrt(variance + group["eps"])
        if group["momentum"]:
            step = state["momentum_buffer"].mul_(group["momentum"]).add_(step)
        p.add_(step, alpha=-group["lr"])
