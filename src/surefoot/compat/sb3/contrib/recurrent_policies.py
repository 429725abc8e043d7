"""sb3-contrib's policies with LSTMs, with its weight names; a single layer runs in the kernel."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from surefoot.compat.sb3.functions import Schedule
from surefoot.compat.sb3.policies.actor_critic import ActorCriticPolicy
from surefoot.compat.sb3.policies.base import BasePolicy
from surefoot.compat.sb3.policies.layers import CombinedExtractor, MlpExtractor, NatureCNN
from surefoot.nets.recurrent import UNROLL, can_scan, narrow_linear, scan, step

State = tuple[Tensor, Tensor]
"""Hidden and cell state, each [layers, N, size]."""


class RNNStates(NamedTuple):
    """The states of the policy's and the critic's LSTM."""

    pi: State
    vf: State


class RecurrentActorCriticPolicy(ActorCriticPolicy):
    """`ActorCriticPolicy` with an LSTM behind the features.

    By default the critic has its own LSTM; with `shared_lstm` it uses the policy's without changing it, and with neither
    `enable_critic_lstm` nor `shared_lstm` it has a linear layer instead.
    """

    def __init__(
        self,
        observation_space: Any,
        action_space: Any,
        lr_schedule: Schedule,
        *args: Any,
        lstm_hidden_size: int = 256,
        n_lstm_layers: int = 1,
        shared_lstm: bool = False,
        enable_critic_lstm: bool = True,
        lstm_kwargs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        self.lstm_output_dim = lstm_hidden_size
        super().__init__(observation_space, action_space, lr_schedule, *args, **kwargs)
        assert not (shared_lstm and enable_critic_lstm), "shared_lstm=True needs enable_critic_lstm=False"
        assert not shared_lstm or self.share_features_extractor, "shared_lstm=True needs share_features_extractor=True"
        self.lstm_kwargs, self.shared_lstm, self.enable_critic_lstm = lstm_kwargs or {}, shared_lstm, enable_critic_lstm
        self.lstm_hidden_state_shape = (n_lstm_layers, 1, lstm_hidden_size)

        def lstm() -> nn.LSTM:
            return nn.LSTM(self.features_dim, lstm_hidden_size, num_layers=n_lstm_layers, **self.lstm_kwargs)

        self.lstm_actor = lstm()
        self.lstm_critic = lstm() if enable_critic_lstm else None
        neither = not shared_lstm and not enable_critic_lstm
        self.critic = nn.Linear(self.features_dim, lstm_hidden_size) if neither else None
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)  # type: ignore[call-arg]  # every optimizer has lr

    def _build_mlp_extractor(self) -> None:
        self.mlp_extractor = MlpExtractor(
            self.lstm_output_dim, net_arch=self.net_arch, activation_fn=self.activation_fn, device=self.device
        )

    def _get_constructor_parameters(self) -> dict[str, Any]:
        layers, _, size = self.lstm_hidden_state_shape
        return {
            **super()._get_constructor_parameters(),
            "lstm_hidden_size": size,
            "n_lstm_layers": layers,
            "shared_lstm": self.shared_lstm,
            "enable_critic_lstm": self.enable_critic_lstm,
            "lstm_kwargs": self.lstm_kwargs,
        }

    @staticmethod
    def _process_sequence(
        features: Tensor, lstm_states: State, episode_starts: Tensor, lstm: nn.LSTM
    ) -> tuple[Tensor, State]:
        """Return the LSTM's outputs and its new state. Rows are sequence by sequence; a state is zero where an episode starts."""
        sequences = lstm_states[0].shape[1]
        inputs = features.reshape((sequences, -1, lstm.input_size)).swapaxes(0, 1)
        starts = episode_starts.reshape((sequences, -1)).swapaxes(0, 1) != 0
        outputs, state = run_lstm(lstm, inputs, lstm_states, starts)
        return outputs.transpose(0, 1).flatten(0, 1), state

    def _memories(self, obs: Any, states: RNNStates, starts: Tensor) -> tuple[Tensor, Tensor, RNNStates]:
        """Return the inputs of the policy's and the critic's layers, and the new states."""
        features = self.extract_features(obs)
        pi_features, vf_features = (features, features) if self.share_features_extractor else features
        latent_pi, pi = self._process_sequence(pi_features, states.pi, starts, self.lstm_actor)
        if self.lstm_critic is not None:
            latent_vf, vf = self._process_sequence(vf_features, states.vf, starts, self.lstm_critic)
        elif self.critic is not None:
            latent_vf, vf = self.critic(vf_features), pi
        else:
            latent_vf, vf = latent_pi.detach(), (pi[0].detach(), pi[1].detach())
        layers = self.mlp_extractor
        return layers.forward_actor(latent_pi), layers.forward_critic(latent_vf), RNNStates(pi, vf)

    def forward(  # type: ignore[override]  # sb3-contrib's signature
        self, obs: Any, lstm_states: RNNStates, episode_starts: Tensor, deterministic: bool = False
    ) -> tuple[Tensor, Tensor, Tensor, RNNStates]:
        """Return (actions, values, log-probabilities, new states)."""
        latent_pi, latent_vf, states = self._memories(obs, lstm_states, episode_starts)
        distribution = self._get_action_dist_from_latent(latent_pi)
        actions = distribution.get_actions(deterministic=deterministic)
        log_prob = distribution.log_prob(actions)
        assert self.action_space.shape is not None
        return actions.reshape((-1, *self.action_space.shape)), self.value_net(latent_vf), log_prob, states

    def evaluate_actions(  # type: ignore[override]  # sb3-contrib's signature
        self, obs: Any, actions: Tensor, lstm_states: RNNStates, episode_starts: Tensor
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return (values, log-probabilities, entropies) of stored actions, sequence by sequence."""
        latent_pi, latent_vf, _ = self._memories(obs, lstm_states, episode_starts)
        distribution = self._get_action_dist_from_latent(latent_pi)
        return self.value_net(latent_vf), distribution.log_prob(actions), distribution.entropy()

    def get_distribution(self, obs: Any, lstm_states: State, episode_starts: Tensor) -> tuple[Any, State]:  # type: ignore[override]  # sb3-contrib's
        """Return the distribution of the actions and the new state of the policy's LSTM."""
        features = BasePolicy.extract_features(self, obs, self.pi_features_extractor)
        latent_pi, state = self._process_sequence(features, lstm_states, episode_starts, self.lstm_actor)
        return self._get_action_dist_from_latent(self.mlp_extractor.forward_actor(latent_pi)), state

    def predict_values(self, obs: Any, lstm_states: State, episode_starts: Tensor) -> Tensor:  # type: ignore[override]  # sb3-contrib's
        """Return the values, [N, 1], from the state of the critic's LSTM."""
        features = BasePolicy.extract_features(self, obs, self.vf_features_extractor)
        if self.critic is not None:
            latent_vf = self.critic(features)
        else:
            lstm = self.lstm_actor if self.lstm_critic is None else self.lstm_critic
            latent_vf, _ = self._process_sequence(features, lstm_states, episode_starts, lstm)
        return self.value_net(self.mlp_extractor.forward_critic(latent_vf))

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[np.ndarray, Any]:
        """Return (action for one observation or a batch, (hidden, cell) of the policy's LSTM)."""
        self.set_training_mode(False)
        tensor, vectorized = self.obs_to_tensor(observation)
        count = len(next(iter(tensor.values())) if isinstance(tensor, dict) else tensor)
        layers, _, size = self.lstm_hidden_state_shape
        if state is None:
            state = (np.zeros((layers, count, size)), np.zeros((layers, count, size)))
        starts = np.zeros(count) if episode_start is None else episode_start
        with torch.no_grad():
            hidden, cell = (torch.as_tensor(x, dtype=torch.float32, device=self.device) for x in state)
            flags = torch.as_tensor(starts, dtype=torch.float32, device=self.device)
            distribution, states = self.get_distribution(tensor, (hidden, cell), flags)
            actions = distribution.get_actions(deterministic=deterministic)
        return self.to_env(actions.cpu().numpy(), vectorized), tuple(x.cpu().numpy() for x in states)


class RecurrentActorCriticCnnPolicy(RecurrentActorCriticPolicy):
    """`RecurrentActorCriticPolicy` with `NatureCNN`."""

    default_extractor = NatureCNN


class RecurrentMultiInputActorCriticPolicy(RecurrentActorCriticPolicy):
    """`RecurrentActorCriticPolicy` with `CombinedExtractor`, for Dict observations."""

    default_extractor = CombinedExtractor


def run_lstm(lstm: nn.LSTM, inputs: Tensor, state: State, starts: Tensor) -> tuple[Tensor, State]:
    """Return outputs [T, B, size] and the new state of an LSTM; the state is zero where `starts` ([T, B] bool) is True."""
    if lstm.num_layers == 1 and lstm.bias and not lstm.bidirectional and lstm.proj_size == 0:
        carry = torch.cat([state[0][0], state[1][0]], dim=-1)
        first: Any = lstm  # torch does not declare the weights
        weights_in, bias_in, weights, bias = first.weight_ih_l0, first.bias_ih_l0, first.weight_hh_l0, first.bias_hh_l0
        by_kernel = can_scan(starts, inputs, weights_in, bias_in, carry, weights, bias)
        if by_kernel and len(inputs) == 1 and not torch.is_grad_enabled():
            outputs, carry = step(starts, inputs, weights_in, bias_in, carry, weights, bias)
        else:
            unroll = scan if by_kernel else UNROLL["lstm"]
            outputs, carry = unroll(narrow_linear(inputs, weights_in, bias_in), carry, starts, weights, bias)
        hidden, cell = carry.chunk(2, dim=-1)
        return outputs, (hidden.unsqueeze(0), cell.unsqueeze(0))
    if not bool(starts.any()):
        return lstm(inputs, state)
    outputs = list[Tensor]()
    for row, start in zip(inputs, starts, strict=True):
        keep = (~start).float().view(1, -1, 1)
        out, state = lstm(row.unsqueeze(0), (keep * state[0], keep * state[1]))
        outputs.append(out)
    return torch.cat(outputs), state
