"""The policy of a standalone program, built from layers and heads of the library; `standalone` copies its source.

`nets.ActorCritic` does more than such a program needs: custom networks, state-dependent noise, memory for the kernel.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from surefoot.core.batch import Batch, Evaluation
from surefoot.data.seeds import seed_for
from surefoot.data.spaces import Box, ObservationSpace
from surefoot.envs.api import Arrays
from surefoot.nets.continuous_heads import GaussianHead
from surefoot.nets.heads import DiscreteHead
from surefoot.nets.images import Parts
from surefoot.nets.policy import PolicyInput, PolicyOutput
from surefoot.nets.recurrent import GATES, UNROLL
from surefoot.nets.torsos import Flatten, layer, mlp


class ScaledHead(GaussianHead):
    """Independent normals whose actions are multiplied by `factor` and then clipped, as ActionProcessor does."""

    def __init__(self, space: Box, *, factor: Any, log_std_init: float) -> None:
        super().__init__(space, log_std_init=log_std_init)
        self.factor = np.asarray(factor, np.float32)

    def env_action(self, action: np.ndarray) -> np.ndarray:
        return np.clip(action.reshape(len(action), *self.shape) * self.factor, self.low, self.high)


class PolicyNet(nn.Module):
    """An actor and a critic, with one trunk if `net.shared`, between a torso and a head of the library."""

    sequential = False

    def __init__(
        self,
        observation: ObservationSpace,
        torso: Flatten | Parts,
        head: DiscreteHead | GaussianHead,
        net: SimpleNamespace,
    ) -> None:
        super().__init__()
        self.observation, self.torso, self.shared = observation, torso, net.shared
        inputs = self.add_memory(torso.size, net)
        features, ortho = net.hidden[-1] if net.hidden else inputs, net.ortho_init
        self.actor = mlp(inputs, net.hidden, activation=net.activation, ortho_init=ortho)
        self.critic = (
            nn.Sequential() if net.shared else mlp(inputs, net.hidden, activation=net.activation, ortho_init=ortho)
        )
        self.value_out = layer(features, 1, gain=1.0, ortho_init=ortho)
        self.policy_out = layer(features, head.outputs, gain=0.01, ortho_init=ortho)
        # Last, as in the library: the gradient norm is summed in the order of the parameters.
        self.head = head

    def add_memory(self, inputs: int, net: SimpleNamespace) -> int:
        """Return the number of features that actor and critic read."""
        return inputs

    def initial_context(self, streams: int) -> dict[str, Tensor]:
        """Return the recurrent state before the first step."""
        return {}

    def look(
        self, obs: dict[str, Tensor], context: dict[str, Tensor], start: Tensor | None, shape: tuple[int, ...]
    ) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """Return the inputs of actor and critic, one row per step, and the next recurrent state."""
        x = self.torso(obs)
        return x, x, context

    def forward(
        self, obs: dict[str, Tensor], context: dict[str, Tensor], start: Tensor | None, shape: tuple[int, ...]
    ) -> tuple[Tensor, Tensor, Tensor, dict[str, Tensor]]:
        """Return the head's input, the value, the actor's features and the context; `obs` has rows for shape [T, B]."""
        x, critic_input, context = self.look(obs, context, start, shape)
        features = self.actor(x)
        value = self.value_out(features if self.shared else self.critic(critic_input)).squeeze(-1)
        return self.policy_out(features), value, features, context

    def act(self, inputs: PolicyInput, *, generator: torch.Generator, deterministic: bool = False) -> PolicyOutput:
        """Choose one action per stream."""
        start = None if inputs.start is None else inputs.start.unsqueeze(0)
        streams = len(next(iter(inputs.obs.values())))
        raw, value, features, context = self(inputs.obs, inputs.context, start, (1, streams))
        dist = self.head.distribution(raw, features, inputs.action_mask)
        action = dist.mode() if deterministic else dist.sample(generator)
        log_prob = dist.log_prob(action)
        return PolicyOutput(action=action, value=value, log_prob=log_prob, distribution=dist, context=context)

    def value(self, inputs: PolicyInput) -> Tensor:
        """Return the expected return of each stream."""
        return self(inputs.obs, inputs.context, None, (1, len(next(iter(inputs.obs.values())))))[1]

    def evaluate(self, batch: Batch) -> Evaluation:
        """Return log-probs, entropies and values of stored steps, each [T, B]."""
        shape = batch.advantage.shape
        obs = {name: part.flatten(0, 1) for name, part in batch.obs.items()}
        raw, value, features, _ = self(obs, batch.context, batch.start, shape)
        mask = None if batch.action_mask is None else batch.action_mask.flatten(0, 1)
        dist = self.head.distribution(raw, features, mask)
        log_prob = dist.log_prob(batch.action.flatten(0, 1))
        return Evaluation(log_prob.view(shape), dist.entropy().view(shape), value.view(shape))

    def env_action(self, action: np.ndarray) -> np.ndarray:
        """Return the actions as the environment takes them."""
        return self.head.env_action(action)

    def absorb(self, obs: Arrays) -> None:
        """Update the observation statistics, if the torso has any."""
        self.torso.absorb(obs)


class RecurrentLayer(nn.Module):
    """One recurrent layer; its state is passed in and out, never stored."""

    def __init__(self, kind: str, inputs: int, size: int, *, ortho_init: bool) -> None:
        super().__init__()
        self.kind = kind
        self.inward = layer(inputs, GATES[kind] * size, gain=1.0, ortho_init=ortho_init)
        self.onward = layer(size, GATES[kind] * size, gain=1.0, ortho_init=ortho_init)

    def forward(self, x: Tensor, carry: Tensor, start: Tensor | None) -> tuple[Tensor, Tensor]:
        """Map [T, B, inputs] to [T, B, size] and the next state; where `start` is True the state is reset."""
        fresh = None if start is None or not bool(start.any()) else start
        return UNROLL[self.kind](self.inward(x), carry, fresh, self.onward.weight, self.onward.bias)


class RecurrentNet(PolicyNet):
    """A policy with a recurrent layer in front: one for actor and critic if `net.shared`, else one each."""

    sequential = True

    def add_memory(self, inputs: int, net: SimpleNamespace) -> int:
        """Return the size of the recurrent layer."""
        names = ("memory",) if net.shared else ("memory", "critic_memory")
        self.memories = nn.ModuleDict(
            {name: RecurrentLayer(net.memory, inputs, net.memory_size, ortho_init=net.ortho_init) for name in names}
        )
        self.carried = net.memory_size * (2 if net.memory == "lstm" else 1)
        return net.memory_size

    def initial_context(self, streams: int) -> dict[str, Tensor]:
        """Return states of zeros."""
        return {name: torch.zeros(streams, self.carried) for name in self.memories}

    def look(
        self, obs: dict[str, Tensor], context: dict[str, Tensor], start: Tensor | None, shape: tuple[int, ...]
    ) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """Return the inputs of actor and critic, one row per step, and the next recurrent state."""
        x = self.torso(obs).unflatten(0, shape)
        after: dict[str, Tensor] = {}
        rows: list[Tensor] = []
        for name, memory in self.memories.items():
            hidden, after[name] = memory(x, context[name], start)
            rows.append(hidden.flatten(0, 1))
        return rows[0], rows[-1], after


def row_policy(
    observation: ObservationSpace, head: Any, net: SimpleNamespace, seed: int, kind: type[PolicyNet] = PolicyNet
) -> PolicyNet:
    """Return a policy for observations that are rows of numbers."""
    torch.manual_seed(seed_for("weights", seed))
    return kind(observation, Flatten(observation, normalize=net.normalize_obs, clip=net.obs_clip), head, net)


def picture_policy(observation: ObservationSpace, head: Any, net: SimpleNamespace, seed: int) -> PolicyNet:
    """Return a policy for observations that are pictures."""
    torch.manual_seed(seed_for("weights", seed))
    options: dict[str, Any] = {"normalize": net.normalize_obs, "clip": net.obs_clip, "ortho_init": net.ortho_init}
    torso = Parts(observation, cnn="auto", features=net.cnn_features, **options)
    return PolicyNet(observation, torso, head, net)
