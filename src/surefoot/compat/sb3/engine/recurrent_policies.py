"""A recurrent SB3 policy as a `Policy` of the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from gymnasium import spaces
from torch import Tensor

from surefoot.compat.sb3.contrib.recurrent_policies import RNNStates
from surefoot.compat.sb3.engine.policies import EnginePolicy
from surefoot.core.batch import Batch, Evaluation
from surefoot.nets.policy import PolicyInput, PolicyOutput

NAMES = ("pi_hidden", "pi_cell", "vf_hidden", "vf_cell")


class RecurrentEnginePolicy(EnginePolicy):
    """Any `RecurrentActorCriticPolicy`. The context has the states of both LSTMs, each [N, layers, size]."""

    sequential = True

    def act(self, inputs: PolicyInput, *, generator: torch.Generator, deterministic: bool = False) -> PolicyOutput:
        """Return actions, values, log-probs and the new context."""
        obs = self.unpack(inputs.obs)
        self.renew_noise(inputs)
        starts = self._flags(inputs)
        actions, values, log_prob, states = self.policy(obs, states_of(inputs.context), starts, deterministic)
        self.last = {"obs_tensor": obs, "actions": actions.cpu().numpy(), "values": values, "log_probs": log_prob}
        self.last |= {"lstm_states": states, "episode_starts": starts}
        stored = actions if isinstance(self.space, spaces.Discrete) else actions.flatten(1)
        nothing: Any = None
        return PolicyOutput(
            action=stored,
            value=values.flatten(),
            log_prob=log_prob,
            distribution=nothing,
            context=context_of(states),
        )

    def value(self, inputs: PolicyInput) -> Tensor:
        """Return the values, [N]."""
        states = states_of(inputs.context)
        return self.policy.predict_values(self.unpack(inputs.obs), states.vf, self._flags(inputs)).flatten()

    def evaluate(self, batch: Batch) -> Evaluation:
        """Return log-probs, entropies and values of stored steps. The engine's rows are time by time, SB3's stream by stream."""
        steps, streams = batch.advantage.shape
        actions = batch.action.transpose(0, 1).flatten(0, 1)
        if isinstance(self.space, spaces.Box):
            actions = actions.reshape(-1, *self.space.shape) if len(self.space.shape) == 1 else actions
        obs, starts = self._rows(batch, slice(None))
        value, log_prob, entropy = self.policy.evaluate_actions(obs, actions, states_of(batch.context), starts)
        entropy = -log_prob if entropy is None else entropy

        def grid(x: Tensor) -> Tensor:
            return x.flatten().view(streams, steps).t()

        return Evaluation(grid(log_prob), grid(entropy), grid(value))

    def remembered(self, batch: Batch, steps: Sequence[int]) -> list[dict[str, Tensor]]:
        """Return the context before each of `steps` (ascending) under the current weights."""
        contexts, now, context = list[dict[str, Tensor]](), 0, batch.context
        for step in steps:
            if step > now:
                obs, starts = self._rows(batch, slice(now, step))
                with torch.no_grad():
                    context = context_of(self.policy(obs, states_of(context), starts, True)[3])
                now = step
            contexts.append(context)
        return contexts

    def initial_context(self, streams: int) -> dict[str, Tensor]:
        """Return zeros."""
        layers, _, size = self.policy.lstm_hidden_state_shape
        return {name: torch.zeros((streams, layers, size), device=self.policy.device) for name in NAMES}

    def _rows(self, batch: Batch, steps: slice) -> tuple[Any, Tensor]:
        """Return observations and episode starts of these steps, stream by stream."""
        assert batch.start is not None
        parts = {name: part[steps].transpose(0, 1).flatten(0, 1) for name, part in batch.obs.items()}
        return self.unpack(parts), batch.start[steps].t().flatten().float()

    def _flags(self, inputs: PolicyInput) -> Tensor:
        count = len(next(iter(inputs.obs.values())))
        return torch.zeros(count, device=self.policy.device) if inputs.start is None else inputs.start.float()


def states_of(context: dict[str, Tensor]) -> RNNStates:
    """Return the LSTMs' states in torch's layout, [layers, N, size]."""
    pi_hidden, pi_cell, vf_hidden, vf_cell = (context[name].transpose(0, 1).contiguous() for name in NAMES)
    return RNNStates((pi_hidden, pi_cell), (vf_hidden, vf_cell))


def context_of(states: RNNStates) -> dict[str, Tensor]:
    """Return the states in the engine's layout, [N, layers, size]."""
    return {name: x.transpose(0, 1) for name, x in zip(NAMES, (*states.pi, *states.vf), strict=True)}
