"""An SB3 policy as a `Policy` of the engine, and a standard one as an `ActorCritic` with the same weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from gymnasium import spaces as gym_spaces
from torch import Tensor, nn

from surefoot.compat.sb3.contrib.mask_distributions import MaskableDistribution
from surefoot.compat.sb3.contrib.mask_policies import MaskableActorCriticPolicy, MaskableMultiInputActorCriticPolicy
from surefoot.compat.sb3.policies.actor_critic import ActorCriticPolicy, MultiInputActorCriticPolicy
from surefoot.compat.sb3.policies.distributions import (
    CategoricalDistribution,
    DiagGaussianDistribution,
    MultiCategoricalDistribution,
)
from surefoot.compat.sb3.policies.layers import (
    CombinedExtractor,
    FlattenExtractor,
    MlpExtractor,
    get_actor_critic_arch,
)
from surefoot.compat.sb3.policies.state_noise import StateDependentNoiseDistribution
from surefoot.compat.sb3.spaces import get_flattened_obs_dim
from surefoot.core.batch import Batch, Evaluation
from surefoot.data.spaces import ActionSpace, Box, Discrete
from surefoot.envs.gym.spaces import action_from_gym
from surefoot.learn.choose_path import why_not
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.nets.networks import Trunks
from surefoot.nets.policy import PolicyInput, PolicyOutput
from surefoot.nets.torsos import ACTIVATIONS

ROWS = "obs"
"""The name of the only observation part where observations are rows of floats."""


class EnginePolicy:
    """Any `ActorCriticPolicy`, subclasses included: it acts by `forward` and learns by `evaluate_actions`."""

    sequential = False

    def __init__(self, policy: Any, sde_sample_freq: int = -1) -> None:
        self.policy, self.sde_sample_freq = policy, sde_sample_freq
        self.space: Any = policy.action_space
        self.step = 0
        """Steps since the rollout began, for gSDE."""
        self.last: dict[str, Any] = {}
        """Values of the last `act` that callbacks read in their locals."""

    def unpack(self, obs: dict[str, Tensor]) -> Any:
        """Return observations in the form of the policy's space."""
        return obs if isinstance(self.policy.observation_space, gym_spaces.Dict) else obs[ROWS]

    def act(self, inputs: PolicyInput, *, generator: torch.Generator, deterministic: bool = False) -> PolicyOutput:
        """Return actions, values and log-probs; random numbers come from torch's global generator, as in SB3."""
        obs = self.unpack(inputs.obs)
        self.renew_noise(inputs)
        masks = {} if inputs.action_mask is None else {"action_masks": inputs.action_mask}
        actions, values, log_prob = self.policy(obs, deterministic, **masks)
        self.last = {"obs_tensor": obs, "actions": actions.cpu().numpy(), "values": values, "log_probs": log_prob}
        stored = actions if isinstance(self.space, gym_spaces.Discrete) else actions.flatten(1)
        nothing: Any = None
        return PolicyOutput(action=stored, value=values.flatten(), log_prob=log_prob, distribution=nothing)

    def renew_noise(self, inputs: PolicyInput) -> None:
        """Count a step, and draw new exploration matrices of gSDE if they are due."""
        if self.policy.use_sde and self.step and self.sde_sample_freq > 0 and self.step % self.sde_sample_freq == 0:
            self.policy.reset_noise(len(next(iter(inputs.obs.values()))))
        self.step += 1

    def value(self, inputs: PolicyInput) -> Tensor:
        """Return the values, [N]."""
        return self.policy.predict_values(self.unpack(inputs.obs)).flatten()

    def evaluate(self, batch: Batch) -> Evaluation:
        """Return log-probs, entropies and values of stored steps."""
        shape = batch.advantage.shape
        obs = self.unpack({name: part.flatten(0, 1) for name, part in batch.obs.items()})
        masks = {} if batch.action_mask is None else {"action_masks": batch.action_mask.flatten(0, 1)}
        value, log_prob, entropy = self.policy.evaluate_actions(obs, batch.action.flatten(0, 1), **masks)
        # Without a closed form, -log p of the actions is an estimate of the entropy.
        entropy = -log_prob if entropy is None else entropy
        return Evaluation(log_prob.view(shape), entropy.view(shape), value.flatten().view(shape))

    def initial_context(self, streams: int) -> dict[str, Tensor]:
        """Return {}: the policy has no memory."""
        return {}

    def renew_context(self, context: dict[str, Tensor]) -> dict[str, Tensor]:
        """Count the steps of gSDE from the start of the rollout; the model draws its noise."""
        self.step = 0
        return context

    def env_action(self, action: np.ndarray) -> np.ndarray:
        """Return actions in the shape and within the bounds of the action space."""
        self.last["clipped_actions"] = clipped = self.policy.to_env(action, vectorized=True)
        return clipped

    def absorb(self, obs: dict[str, np.ndarray]) -> None:
        """Do nothing: `VecNormalize` has the statistics."""

    def action_std(self) -> float | None:
        """Return the mean deviation, if the policy has one."""
        log_std = getattr(self.policy, "log_std", None)
        return None if log_std is None else float(log_std.detach().exp().mean())

    def choices(self) -> tuple[int, ...]:
        """Return the number of options of each choice."""
        action = action_of(self.space)
        return () if isinstance(action, Box) else (action.n,) if isinstance(action, Discrete) else tuple(action.nvec)  # type: ignore[union-attr]  # no Hybrid

    def describe(self) -> dict[str, Any]:
        """Return the class of the policy."""
        return {"kind": "sb3", "class": type(self.policy).__qualname__}

    def parameters(self) -> Iterator[nn.Parameter]:
        return self.policy.parameters()

    def modules(self) -> Iterator[nn.Module]:
        return self.policy.modules()

    def state_dict(self) -> dict[str, Tensor]:
        return self.policy.state_dict()

    def load_state_dict(self, state_dict: dict[str, Tensor]) -> Any:
        """Set the policy's weights."""
        return self.policy.load_state_dict(state_dict)

    def to(self, device: torch.device) -> Any:
        self.policy.to(device)
        return self


def action_of(space: Any) -> ActionSpace:
    """Return the engine's space for an action space. SB3 counts choices from 0 and ignores `start`."""
    if isinstance(space, gym_spaces.Box):
        low, high = (tuple(float(v) for v in np.asarray(x, np.float32).ravel()) for x in (space.low, space.high))
        return Box(space.shape, low, high)
    return Discrete(int(space.n)) if isinstance(space, gym_spaces.Discrete) else action_from_gym(space)


_UNCHANGED = (
    *(ActorCriticPolicy, MultiInputActorCriticPolicy),
    *(MaskableActorCriticPolicy, MaskableMultiInputActorCriticPolicy),
)


def standard(policy: Any, sde_sample_freq: int = -1) -> ActorCritic | None:
    """Return an `ActorCritic` that shares the weights of an unchanged SB3 policy; None for anything that was customized.

    The kernel supports the result. Its observations are rows of floats. `sde_sample_freq` is the model's, for gSDE.
    """
    if type(policy) not in _UNCHANGED:
        return None
    plain = (
        type(policy.mlp_extractor) is MlpExtractor
        and {type(policy.pi_features_extractor), type(policy.vf_features_extractor)}
        <= {FlattenExtractor, CombinedExtractor}
        and not any(isinstance(x, nn.Conv2d) for x in policy.modules())
        and (
            isinstance(policy.action_dist, MaskableDistribution)
            or type(policy.action_dist)
            in (CategoricalDistribution, MultiCategoricalDistribution, DiagGaussianDistribution)
            or _plain_noise(policy.action_dist)
        )
    )
    names = {kind: name for name, kind in ACTIVATIONS.items()}
    if not plain or policy.activation_fn not in names or not isinstance(policy.net_arch, list | dict):
        return None
    hidden, critic_hidden = get_actor_critic_arch(policy.net_arch)
    noisy = isinstance(policy.action_dist, StateDependentNoiseDistribution)
    config = NetConfig(
        hidden=tuple(hidden),
        critic_hidden=tuple(critic_hidden),
        activation=names[policy.activation_fn],
        gsde=noisy,
        gsde_every=sde_sample_freq if noisy and sde_sample_freq > 0 else -1,
    )
    inputs = sum(map(get_flattened_obs_dim, _parts(policy.observation_space)))
    engine = ActorCritic({ROWS: Box((inputs,))}, action_of(policy.action_space), config)
    network: Any = engine.network
    assert isinstance(network, Trunks)
    network.actor, network.critic = policy.mlp_extractor.policy_net, policy.mlp_extractor.value_net
    network.policy_out, network.value_out = policy.action_net, policy.value_net
    if noisy or isinstance(policy.action_dist, DiagGaussianDistribution):
        engine.head.log_std = policy.log_std
    return engine if why_not(engine) is None else None


def _plain_noise(distribution: Any) -> bool:
    """Return whether this is gSDE as the engine has it: one deviation per feature and action, by exp, not squashed."""
    return (
        type(distribution) is StateDependentNoiseDistribution
        and distribution.full_std
        and not (distribution.use_expln or distribution.learn_features)
        and distribution.bijector is None
    )


def _parts(space: Any) -> list[Any]:
    return list(space.spaces.values()) if isinstance(space, gym_spaces.Dict) else [space]
