"""The engine's learner with the schedules, the value loss and the optimizer of an SB3 model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from surefoot.core.batch import Batch
from surefoot.core.losses import Losses, ppo_loss
from surefoot.learn.config import PPOConfig
from surefoot.learn.learner import Learner
from surefoot.learn.rate_control import Knobs
from surefoot.learn.torch_update import TorchUpdate


class TorchOptimizer:
    """A torch optimizer with the interface of the engine's `Optimizer`."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer
        self.parameters = [p for group in optimizer.param_groups for p in group["params"]]

    def follow(self, parameters: Iterable[nn.Parameter], *, critic: Iterable[nn.Parameter] = ()) -> None:
        """Keep the parameters that the user's optimizer was made with, as SB3 does."""

    def zero_grad(self) -> None:
        self.optimizer.zero_grad()

    def clip(self, limit: float) -> Tensor:
        """Scale all gradients together to a norm of at most `limit`; return the norm before."""
        return nn.utils.clip_grad_norm_(self.parameters, limit)

    def step(self, lr: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        self.optimizer.step()

    def tensors(self) -> dict[str, Tensor]:
        """Return the state as named tensors, not copied."""
        state = self.optimizer.state
        return {
            f"{name}.{i}": x
            for i, p in enumerate(self.parameters)
            for name, x in state.get(p, {}).items()
            if isinstance(x, Tensor)
        }

    @torch.no_grad()
    def load(self, tensors: dict[str, Tensor]) -> None:
        """Restore what `tensors` returned."""
        for name, x in self.tensors().items():
            if name in tensors:
                x.copy_(tensors[name])


class ValueClipUpdate(TorchUpdate):
    """PPO's update with SB3's clipped value: only the clipped error counts, not the larger of the two."""

    value_range: float | None = None

    def objective(self, minibatch: Batch, advantage: Tensor, knobs: Knobs) -> Losses:
        """Return PPO's losses of a minibatch for `advantage`."""
        evaluation, config = self.policy.evaluate(minibatch), self.config
        if self.value_range is not None:
            moved = (evaluation.value - minibatch.value).clamp(-self.value_range, self.value_range)
            evaluation = replace(evaluation, value=minibatch.value + moved)
        return ppo_loss(
            evaluation,
            minibatch,
            advantage,
            clip=knobs.clip,
            value_clip=None,
            vf_coef=config.vf_coef,
            ent_coef=knobs.ent_coef,
            kl_coef=config.kl_coef,
            dual_clip=config.dual_clip,
        )


class ModelLearner(Learner):
    """A learner whose learning rate, clip range and entropy weight are set before each update."""

    def __init__(self, policy: Any, config: PPOConfig, optimizer: torch.optim.Optimizer, device: torch.device) -> None:
        self.current = Knobs(3e-4, 0.2, 0.0, 1.0)
        self.torch_optimizer = optimizer
        foreign: Any = TorchOptimizer(optimizer) if not is_plain_adam(optimizer) else None

        def make(policy: Any, engine: Any, config: Any, generator: Any, device: Any) -> ValueClipUpdate:
            return ValueClipUpdate(policy, foreign or engine, config, generator, device)

        super().__init__(policy, config, device=device, make_update=make)
        if foreign is not None:
            self.optimizer = foreign

    def knobs(self, progress: float | None = None) -> Knobs:
        """Return the values for the next update."""
        return self.current

    def share_state(self) -> None:
        """Make the torch optimizer's state and the engine's slots the same tensors; loaded values are taken over."""
        engine: Any = self.optimizer
        if isinstance(engine, TorchOptimizer):
            return
        state = self.torch_optimizer.state
        for i, p in enumerate(engine.parameters):
            slots = {"step": engine.steps[i], **{name: each[i] for name, each in engine.slots.items()}}
            for name, slot in slots.items():
                if name in state.get(p, {}) and state[p][name] is not slot:
                    slot.copy_(state[p][name])
            state[p] = slots


def is_plain_adam(optimizer: torch.optim.Optimizer) -> bool:
    """Return whether the engine's Adam does the same: no option but lr, eps and weight_decay, one group."""
    if type(optimizer) is not torch.optim.Adam or len(optimizer.param_groups) != 1:
        return False
    group = optimizer.param_groups[0]
    return group["betas"] == (0.9, 0.999) and not group["amsgrad"] and not group["maximize"]
