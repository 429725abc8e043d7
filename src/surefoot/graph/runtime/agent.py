"""The agent: an actor-critic network that acts once per tick."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from surefoot.data.seeds import seed_for
from surefoot.data.spaces import ActionSpace, Box, Discrete, MultiDiscrete
from surefoot.envs.api import Arrays, View
from surefoot.graph.nodes.learning import MASK
from surefoot.graph.runtime.base import RuntimeNode, built, copy_weights
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.nets.policy import PolicyInput, load_weights
from surefoot.train.collect.kernel_act import kernel_act
from surefoot.train.collect.kernel_rollout import KernelActor, kernel_actor
from surefoot.train.collect.tick_collector import ActionRecord
from surefoot.train.device import keep_large_blocks


class PPOAgentNode(RuntimeNode):
    """An actor-critic network; it is built in the first tick, which brings the observations."""

    def setup(self) -> None:
        network = self.params.network
        memory, cnn = network if network in ("gru", "lstm") else "none", "auto" if network == "cnn" else "off"
        self.config = self.settings(NetConfig, memory=memory, cnn=cnn)
        size: int | tuple[int, ...] = self.params.output_size
        self.action: ActionSpace = Box((size,) if isinstance(size, int) else size)
        if self.params.action_space == "discrete":
            self.action = Discrete(size) if isinstance(size, int) else MultiDiscrete(size)
        self.bounds: tuple[Any, Any] = (-math.inf, math.inf)
        """The bounds to which the head clips; an engine that steps whole rollouts sets those of the ActionProcessor."""
        self.policy: ActorCritic | None = None
        self.actor: KernelActor | None = None
        self.context: dict[str, torch.Tensor] = {}
        self.generator = torch.Generator().manual_seed(seed_for("act", self.seed))

    def build(self, observations: Arrays, low: Any = -math.inf, high: Any = math.inf) -> ActorCritic:
        """Build the network for observations like these; `low` and `high` are the bounds to which the head clips."""
        sizes = self.params.input_size
        names = [name for name in observations if name != MASK]
        by_part = sizes if isinstance(sizes, dict) else {names[0]: sizes}
        space = {
            name: Box(
                (size,) if isinstance(size, int) else size,
                dtype="uint8" if observations[name].dtype == np.uint8 else "float32",
            )
            for name, size in by_part.items()
        }
        action = self.action
        if isinstance(action, Box):
            low, high = (tuple(np.ravel(x).tolist()) if np.ndim(x) else float(x) for x in (low, high))
            action = Box(action.shape, low, high)
        self.policy = ActorCritic(space, action, self.config, seed=self.seed)
        # Minibatches of images would be mapped and cleared by the system again in every layer.
        keep_large_blocks(self.policy)
        for memory in self.policy.network.memories().values():
            memory.by_kernel = self.path != "torch"
        self.flat = {name for name, box in space.items() if observations[name].shape[1:] != box.shape}
        self.context = self.policy.initial_context(len(observations[names[0]]))
        return self.policy

    def __call__(self, observations: Arrays, starts: np.ndarray | None = None) -> tuple[ActionRecord, ActorCritic]:
        policy = self.policy
        if policy is None:
            policy = self.build(observations, *self.bounds)
            # The kernel samples; it has no mode, so a deterministic agent acts with torch.
            # In a graph gSDE's noise is kept by torch: the kernel repeats it only within its own rollouts.
            if self.path != "torch" and not self.params.deterministic and policy.head.noise() is None:
                self.actor = kernel_actor(policy, self.seed)
            # In the first tick an episode begins in every copy; the delayed input has no value yet.
            starts = np.ones(len(next(iter(observations.values()))), bool)
        mask = observations.get(MASK)
        observations = {
            name: x.reshape(len(x), -1) if name in self.flat else x for name, x in observations.items() if name != MASK
        }
        if self.actor is not None:
            return self._act_in_kernel(self.actor, observations, mask, starts), policy
        start = None if not policy.sequential else torch.from_numpy(starts if starts is not None else np.zeros(1, bool))
        before = self.context
        inputs = PolicyInput(
            obs={name: torch.from_numpy(x) for name, x in observations.items()},
            action_mask=None if mask is None else torch.from_numpy(mask),
            start=start,
            context=before,
        )
        with torch.no_grad():
            out = policy.act(inputs, generator=self.generator, deterministic=self.params.deterministic)
        self.context = out.context
        chosen = ActionRecord(
            action=out.action,
            value=out.value,
            log_prob=out.log_prob,
            obs=observations,
            action_mask=mask,
            context=before,
            context_after=out.context,
            distribution=out.distribution,
        )
        return chosen, policy

    def _act_in_kernel(
        self, actor: KernelActor, obs: Arrays, mask: np.ndarray | None, starts: np.ndarray | None
    ) -> ActionRecord:
        before, context = self.context, {name: x.numpy().copy() for name, x in self.context.items()}
        start = None if starts is None else np.ascontiguousarray(starts, np.bool_)
        out = kernel_act(
            actor, View(obs=obs, action_mask=mask), actor.rng, deterministic=False, start=start, context=context
        )
        self.context = {name: torch.from_numpy(x) for name, x in context.items()}
        return ActionRecord(
            action=out.action,
            value=out.value,
            log_prob=out.log_prob,
            obs=obs,
            action_mask=mask,
            start=start,
            context=before,
            context_after=self.context,
            actor=actor,
        )

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Return the weights of the network."""
        return {} if self.policy is None else dict(self.policy.state_dict())

    def snapshot(self) -> dict[str, Any]:
        return {
            "weights": copy_weights(self),
            "context": {name: x.clone() for name, x in self.context.items()},
            "generator": self.generator.get_state(),
            **({} if self.actor is None else {"kernel_rng": self.actor.rng.copy()}),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        load_weights(built(self.policy), saved["weights"])
        self.context = {name: torch.as_tensor(x) for name, x in saved["context"].items()}
        self.generator.set_state(torch.as_tensor(saved["generator"]))
        if self.actor is not None:
            # The kernel acts on a packed copy of the weights.
            self.actor.require()
            if "kernel_rng" in saved:
                self.actor.rng[:] = saved["kernel_rng"]
