"""The optimiser: torch's own arithmetic on slots that we hold.

torch's functional optimisers do the work. Its Optimizer classes would load the compiler at their first step
(1.3 CPU-seconds, 70 MB) and spend as long on bookkeeping as a small network spends on its gradient.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.optim.adam import adam
from torch.optim.adamw import adamw
from torch.optim.rmsprop import rmsprop
from torch.optim.sgd import sgd

from surefoot.errors import CheckpointIncompatible, ConfigError
from surefoot.learn.config import PPOConfig

ADAM_BETAS = (0.9, 0.999)
"""Decay rates of Adam's moments: the defaults of the paper and of torch; the kernel is given the same numbers."""
RMSPROP_ALPHA = 0.99
"""Decay rate of RMSprop's mean square: torch's default."""
SLOTS = {
    "adam": ("exp_avg", "exp_avg_sq"),
    "adamw": ("exp_avg", "exp_avg_sq"),
    "sgd": ("momentum",),
    "rmsprop": ("square_avg", "momentum"),
}


@runtime_checkable
class OwnCritic(Protocol):
    """A policy that can say which of its parameters only the critic has."""

    def critic_parameters(self) -> Iterator[nn.Parameter]: ...


def critic_of(policy: object, config: PPOConfig) -> list[nn.Parameter]:
    """The parameters that learn at a rate of their own; none unless the config asks for it."""
    if config.critic_lr_scale == 1.0:
        return []
    found = list(policy.critic_parameters()) if isinstance(policy, OwnCritic) else []
    if not found:
        raise ConfigError(
            f"critic_lr_scale is {config.critic_lr_scale} but this policy has no parameters that are the critic's alone; "
            "leave it at 1"
        )
    return found


class Optimizer:
    """Adam, AdamW, SGD or RMSprop over a fixed list of parameters; one learning rate, times a factor for `critic`."""

    def __init__(
        self, parameters: Iterable[nn.Parameter], config: PPOConfig, *, critic: Iterable[nn.Parameter] = ()
    ) -> None:
        self.config = config
        self.parameters = [p for p in parameters if p.requires_grad]
        apart = {id(p) for p in critic}
        self.groups = [(1.0, [i for i, p in enumerate(self.parameters) if id(p) not in apart])]
        if apart:
            self.groups.append((config.critic_lr_scale, [i for i, p in enumerate(self.parameters) if id(p) in apart]))
        self.slots = {name: [torch.zeros_like(p) for p in self.parameters] for name in SLOTS[config.optimizer]}
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
        for scale, members in self.groups:
            self._step(lr * scale, [i for i in members if self.parameters[i].grad is not None])

    def _step(self, lr: float, used: list[int]) -> None:
        if not used:
            return
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
                        beta1=ADAM_BETAS[0],
                        beta2=ADAM_BETAS[1],
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
                        alpha=RMSPROP_ALPHA,
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
