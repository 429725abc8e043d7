"""The optimiser: torch's functional optimisers on slots that this class holds.

torch's `Optimizer` classes load the compiler at their first step (1.3 CPU-seconds, 70 MB), and their bookkeeping takes as
long as the gradient of a small network.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.optim.adam import adam
from torch.optim.adamw import adamw
from torch.optim.rmsprop import rmsprop
from torch.optim.sgd import sgd

from surefoot.errors import CheckpointIncompatible, ConfigError
from surefoot.learn.config import PPOConfig

# Decay rates of Adam's moments: the defaults of the paper and of torch. The kernel is passed the same numbers.
ADAM_BETAS = (0.9, 0.999)
# Decay rate of RMSprop's mean square: torch's default.
RMSPROP_ALPHA = 0.99
SLOTS = {
    "adam": ("exp_avg", "exp_avg_sq"),
    "adamw": ("exp_avg", "exp_avg_sq"),
    "sgd": ("momentum",),
    "rmsprop": ("square_avg", "momentum"),
}


@runtime_checkable
class OwnCritic(Protocol):
    """A policy that can list the parameters that only its critic uses."""

    def critic_parameters(self) -> Iterator[nn.Parameter]: ...


def critic_of(policy: object, config: PPOConfig) -> list[nn.Parameter]:
    """Return the parameters that learn at `critic_lr_scale` times the rate; none if that is 1."""
    if config.critic_lr_scale == 1.0:
        return []
    parameters = list(policy.critic_parameters()) if isinstance(policy, OwnCritic) else []
    if not parameters:
        raise ConfigError(
            f"critic_lr_scale is {config.critic_lr_scale} but this policy has no parameters that only the critic uses; "
            "leave it at 1"
        )
    return parameters


def _beside(slot: Tensor, parameter: Tensor) -> Tensor:
    """Return the slot with the dtype, device and layout of its parameter; an empty one if it has another shape."""
    if slot.shape != parameter.shape:
        return torch.zeros_like(parameter)
    return slot.to(parameter).contiguous()


class Optimizer:
    """Adam, AdamW, SGD or RMSprop over a fixed list of parameters; one learning rate, times a factor for `critic`."""

    def __init__(
        self, parameters: Iterable[nn.Parameter], config: PPOConfig, *, critic: Iterable[nn.Parameter] = ()
    ) -> None:
        self.config = config
        self.parameters = [p for p in parameters if p.requires_grad]
        self._group(critic)
        self.slots = {name: [torch.zeros_like(p) for p in self.parameters] for name in SLOTS[config.optimizer]}
        # torch's fused and foreach optimisers count steps in one float32 tensor per parameter.
        self.steps = [torch.zeros((), dtype=torch.float32, device=p.device) for p in self.parameters]

    def _group(self, critic: Iterable[nn.Parameter]) -> None:
        scaled = {id(p) for p in critic}
        self.groups = [(1.0, [i for i, p in enumerate(self.parameters) if id(p) not in scaled])]
        if scaled:
            scale = self.config.critic_lr_scale
            self.groups.append((scale, [i for i, p in enumerate(self.parameters) if id(p) in scaled]))

    @torch.no_grad()
    def follow(self, parameters: Iterable[nn.Parameter], *, critic: Iterable[nn.Parameter] = ()) -> None:
        """Adopt the parameters of a policy that was changed: new ones get empty slots, moved ones their slots beside them.

        A parameter that was frozen since keeps its slots, and stays where it is: it gets no gradient.
        """
        before = {id(p): i for i, p in enumerate(self.parameters)}
        now = [p for p in parameters if p.requires_grad or id(p) in before]
        if list(map(id, now)) != list(before):
            old, self.parameters = self.parameters, now
            for name, slots in self.slots.items():
                self.slots[name] = [slots[before[id(p)]] if id(p) in before else torch.zeros_like(p) for p in now]
            new = (torch.zeros((), dtype=torch.float32, device=p.device) for p in now)
            self.steps = [
                self.steps[before[id(p)]] if id(p) in before else step for p, step in zip(now, new, strict=True)
            ]
            self._group(critic)
            del old  # until here: a new parameter must not get the id of an old one
        for i, p in enumerate(self.parameters):
            for slots in self.slots.values():
                slots[i] = _beside(slots[i], p)
            if self.steps[i].device != p.device or self.steps[i].dtype != torch.float32 or self.steps[i].dim():
                self.steps[i] = self.steps[i].float().max().to(p.device)

    def zero_grad(self) -> None:
        """Drop the gradients: with None instead of 0 the next backward writes instead of adding."""
        for parameter in self.parameters:
            parameter.grad = None

    def clip(self, limit: float) -> Tensor:
        """Scale all gradients together to a norm of at most `limit` (detail C11); return the norm before."""
        return nn.utils.clip_grad_norm_(self.parameters, limit, foreach=True)

    def step(self, lr: float) -> None:
        """Take one step for every parameter that has a gradient."""
        for scale, members in self.groups:
            self._step(lr * scale, [i for i in members if self.parameters[i].grad is not None])

    def _step(self, lr: float, used: list[int]) -> None:
        if not used:
            return
        params: list[Tensor] = [self.parameters[i] for i in used]
        grads = [g for i in used if (g := self.parameters[i].grad) is not None]
        slots = {name: [each[i] for i in used] for name, each in self.slots.items()}
        steps, config = [self.steps[i] for i in used], self.config
        common: dict[str, Any] = {"lr": lr, "weight_decay": config.weight_decay, "maximize": False}
        with torch.no_grad():
            # The lists are passed by position in the order of torch's functional API.
            match config.optimizer:
                case "adam" | "adamw":
                    moments = slots["exp_avg"], slots["exp_avg_sq"], []  # the last: amsgrad's maxima
                    beta1, beta2 = ADAM_BETAS
                    (adam if config.optimizer == "adam" else adamw)(
                        *(params, grads, *moments, steps),
                        **common,
                        fused=True,
                        amsgrad=False,
                        beta1=beta1,
                        beta2=beta2,
                        eps=config.adam_eps,
                    )
                case "sgd":
                    sgd(
                        params,
                        grads,
                        [*slots["momentum"]],
                        **common,
                        fused=True,
                        momentum=config.momentum,
                        dampening=0.0,
                        nesterov=False,
                    )
                case _:
                    rmsprop(
                        *(params, grads, slots["square_avg"], [], slots["momentum"], steps),
                        **common,
                        foreach=True,
                        alpha=RMSPROP_ALPHA,
                        eps=config.adam_eps,
                        momentum=config.momentum,
                        centered=False,
                    )

    def tensors(self) -> dict[str, Tensor]:
        """Return the slots and step counts as named tensors, not copied."""
        named = {f"{name}.{i}": slot for name, each in self.slots.items() for i, slot in enumerate(each)}
        return named | {f"step.{i}": step for i, step in enumerate(self.steps)}

    @torch.no_grad()
    def load(self, tensors: dict[str, Tensor]) -> None:
        """Restore what `tensors` returned."""
        slots = self.tensors()
        if set(slots) != set(tensors) or any(slots[name].shape != tensors[name].shape for name in slots):
            raise CheckpointIncompatible(
                f"the saved optimiser is not {self.config.optimizer} over these {len(self.parameters)} parameters; "
                "use the optimizer and the network it was saved with"
            )
        for name, slot in slots.items():
            slot.copy_(tensors[name])
