"""The optimiser: torch's own arithmetic on slots that we hold.

torch's functional optimisers do the work. Its Optimizer classes would load the compiler at their first step
(1.3 CPU-seconds, 70 MB) and spend as long on bookkeeping as a small network spends on its gradient.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.optim.adam import adam
from torch.optim.adamw import adamw
from torch.optim.rmsprop import rmsprop
from torch.optim.sgd import sgd

from surefoot.errors import CheckpointIncompatible
from surefoot.learn.config import PPOConfig

_SLOTS = {
    "adam": ("exp_avg", "exp_avg_sq"),
    "adamw": ("exp_avg", "exp_avg_sq"),
    "sgd": ("momentum",),
    "rmsprop": ("square_avg", "momentum"),
}


class Optimizer:
    """Adam, AdamW, SGD or RMSprop over a fixed list of parameters; one learning rate for all of them."""

    def __init__(self, parameters: Iterable[nn.Parameter], config: PPOConfig) -> None:
        self.config = config
        self.parameters = [p for p in parameters if p.requires_grad]
        self.slots = {name: [torch.zeros_like(p) for p in self.parameters] for name in _SLOTS[config.optimizer]}
        self.steps = [torch.zeros((), dtype=torch.float32, device=p.device) for p in self.parameters]

    def zero_grad(self) -> None:
        """Forget the gradients; None rather than 0, so that the next backward writes instead of adding."""
        for parameter in self.parameters:
            parameter.grad = None

    def clip(self, limit: float) -> Tensor:
        """Scale all gradients together to a norm of at most `limit` (detail C11); the norm before that."""
        return nn.utils.clip_grad_norm_(self.parameters, limit, foreach=True)

    def step(self, lr: float) -> None:
        """Move every parameter that has a gradient."""
        used = [i for i, p in enumerate(self.parameters) if p.grad is not None]
        params: list[Tensor] = [self.parameters[i] for i in used]
        grads = [g for i in used if (g := self.parameters[i].grad) is not None]
        slots = {name: [each[i] for i in used] for name, each in self.slots.items()}
        steps, config = [self.steps[i] for i in used], self.config
        with torch.no_grad():
            match config.optimizer:
                case "adam" | "adamw":
                    (adam if config.optimizer == "adam" else adamw)(
                        params,
                        grads,
                        slots["exp_avg"],
                        slots["exp_avg_sq"],
                        [],
                        steps,
                        fused=True,
                        amsgrad=False,
                        beta1=0.9,
                        beta2=0.999,
                        lr=lr,
                        weight_decay=config.weight_decay,
                        eps=config.adam_eps,
                        maximize=False,
                    )
                case "sgd":
                    sgd(
                        params,
                        grads,
                        [*slots["momentum"]],
                        fused=True,
                        weight_decay=config.weight_decay,
                        momentum=config.momentum,
                        lr=lr,
                        dampening=0.0,
                        nesterov=False,
                        maximize=False,
                    )
                case _:
                    rmsprop(
                        params,
                        grads,
                        slots["square_avg"],
                        [],
                        slots["momentum"],
                        steps,
                        foreach=True,
                        lr=lr,
                        alpha=0.99,
                        eps=config.adam_eps,
                        weight_decay=config.weight_decay,
                        momentum=config.momentum,
                        centered=False,
                    )

    def tensors(self) -> dict[str, Tensor]:
        """All of its memory as named tensors, not copied."""
        named = {f"{name}.{i}": slot for name, each in self.slots.items() for i, slot in enumerate(each)}
        return named | {f"step.{i}": step for i, step in enumerate(self.steps)}

    @torch.no_grad()
    def load(self, tensors: dict[str, Tensor]) -> None:
        """Put back what `tensors` gave."""
        own = self.tensors()
        if set(own) != set(tensors) or any(own[name].shape != tensors[name].shape for name in own):
            raise CheckpointIncompatible(
                f"the saved optimiser is not {self.config.optimizer} over these {len(self.parameters)} parameters; "
                "use the optimizer and the network it was saved with"
            )
        for name, slot in own.items():
            slot.copy_(tensors[name])
