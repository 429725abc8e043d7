"""The standard policy: a network and a head for the actions; and the two ways to bring your own network."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from surefoot.core.batch import Batch, Evaluation
from surefoot.data.seeds import seed_for
from surefoot.data.spaces import ActionSpace, Box, ObservationSpace, space_from_json, space_to_json
from surefoot.errors import CheckpointIncompatible, ConfigError, PolicyError
from surefoot.nets.config import NetConfig
from surefoot.nets.distributions import require_choice
from surefoot.nets.heads import StateDependentHead, make_head
from surefoot.nets.networks import Trunks, Whole, check_whole, feature_size
from surefoot.nets.policy import PolicyOutput, Seen
from surefoot.nets.torsos import Flatten


class ActorCritic(nn.Module):
    """A memoryless policy over any observation parts and any action space.

    Your own network: `torso`, a module from the dict of observations to features [B, F], on which actor and critic
    are built; or `network`, a module that gives (what the head needs [B, outputs], value [B]) all by itself.
    """

    sequential = False

    def __init__(
        self,
        observation: ObservationSpace,
        action: ActionSpace,
        config: NetConfig | None = None,
        *,
        torso: nn.Module | None = None,
        network: nn.Module | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.observation, self.action, self.config = observation, action, config or NetConfig()
        self.flatten: Flatten | None = None
        self.own_module = torso is not None or network is not None
        if torso is not None and network is not None:
            raise ConfigError("torso and network were both given; a whole network needs no torso: give one of them")
        if self.own_module and self.config.normalize_obs:
            raise ConfigError(
                "normalize_obs=True standardises for the standard torso only; put surefoot.nets.normalizer.Normalizer "
                "into your own module, or leave normalize_obs False"
            )
        # Modules draw their first weights from torch's global generator: lend it to them, seeded, and put it back.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed_for("weights", seed))
            self.network = self._trunks(torso) if network is None else Whole(network)
            features = self.network.features if isinstance(self.network, Trunks) else 0
            self.head = make_head(action, features, self.config)
            if isinstance(self.network, Trunks):
                self.network.with_outputs(self.head.outputs, ortho_init=self.config.ortho_init)
        if network is not None:
            if self.config.gsde:
                raise ConfigError("gsde=True needs the standard policy's features; give a torso instead of a network")
            check_whole(network, observation, self.head.outputs)

    def act(self, seen: Seen, *, generator: torch.Generator, deterministic: bool = False) -> PolicyOutput:
        """Choose for N streams; with gSDE the exploration matrix comes in and goes out through the context."""
        if seen.action_mask is not None:
            require_choice(seen.action_mask, self.head.choices())
        raw, value, features = self.network(seen.obs)
        dist = self.head.distribution(raw, features, seen.action_mask)
        context = seen.context
        if deterministic:
            action = dist.mode()
        elif isinstance(self.head, StateDependentHead):
            context = self._noise(self.head, seen.context, generator)
            action = self.head.explore(raw, features, context["gsde"])
        else:
            action = dist.sample(generator)
        log_prob = dist.log_prob(action)
        return PolicyOutput(action=action, value=value, log_prob=log_prob, distribution=dist, context=context)

    def value(self, seen: Seen) -> Tensor:
        """[N] expected returns."""
        return self.network.value(seen.obs)

    def evaluate(self, batch: Batch) -> Evaluation:
        """[T, B] log-probs, entropies and values of stored steps."""
        # One row a step: the layers then see plain matrices whatever T is.
        shape = batch.advantage.shape
        raw, value, features = self.network({name: part.flatten(0, 1) for name, part in batch.obs.items()})
        mask = None if batch.action_mask is None else batch.action_mask.flatten(0, 1)
        dist = self.head.distribution(raw, features, mask)
        log_prob = dist.log_prob(batch.action.flatten(0, 1))
        return Evaluation(log_prob.view(shape), dist.entropy().view(shape), value.view(shape))

    def initial_context(self, streams: int) -> dict[str, Tensor]:
        """{} or, with gSDE, an exploration matrix that is due for its first draw."""
        if not isinstance(self.head, StateDependentHead):
            return {}
        std = self.head.log_std
        return {
            "gsde": torch.zeros((streams, *std.shape), device=std.device),
            "gsde_age": torch.zeros(streams, dtype=torch.int64),
        }

    def renew_context(self, context: dict[str, Tensor]) -> dict[str, Tensor]:
        """The same; a gSDE matrix belongs to the std it was drawn with, so a new rollout draws a new one."""
        return {**context, "gsde_age": torch.zeros_like(context["gsde_age"])} if "gsde_age" in context else context

    def env_action(self, action: np.ndarray) -> np.ndarray:
        """What the world takes for a chosen action."""
        return self.head.env_action(action)

    def absorb(self, obs: dict[str, np.ndarray]) -> None:
        """Move the observation statistics, if this policy keeps any."""
        if self.flatten is not None:
            self.flatten.absorb(obs)

    def action_std(self) -> float | None:
        """Mean standard deviation, for Gaussian heads."""
        return self.head.action_std()

    def choices(self) -> tuple[int, ...]:
        """How many options each discrete choice has."""
        return self.head.choices()

    def describe(self) -> dict[str, Any]:
        """Spaces and config: enough for `policy_from_description`, unless a module of the user's own is inside."""
        return {
            "kind": "actor_critic",
            "own_module": self.own_module,
            "observation": {name: space_to_json(box) for name, box in self.observation.items()},
            "action": space_to_json(self.action),
            "config": self.config.to_json(),
        }

    def _trunks(self, torso: nn.Module | None) -> Trunks:
        if torso is not None:
            return Trunks(torso, feature_size(torso, self.observation), self.config)
        self.flatten = Flatten(self.observation, normalize=self.config.normalize_obs, clip=self.config.obs_clip)
        return Trunks(self.flatten, self.flatten.size, self.config)

    def _noise(
        self, head: StateDependentHead, context: dict[str, Tensor], generator: torch.Generator
    ) -> dict[str, Tensor]:
        age, every = int(context["gsde_age"][0]), self.config.gsde_every
        due = age == 0 or (every > 0 and age % every == 0)
        matrix = head.draw(len(context["gsde_age"]), generator) if due else context["gsde"]
        return {"gsde": matrix, "gsde_age": context["gsde_age"] + 1}


def policy_from_description(description: dict[str, Any]) -> ActorCritic:
    """The architecture that `ActorCritic.describe` described, with fresh weights."""
    if description.get("kind") != "actor_critic":
        raise CheckpointIncompatible(f"a policy of kind {description.get('kind')!r} cannot be built by itself")
    if description["own_module"]:
        raise CheckpointIncompatible("this policy has a network of your own inside: build it and pass it as policy=")
    observation: ObservationSpace = {}
    for name, spec in description["observation"].items():
        box = space_from_json(spec)
        assert isinstance(box, Box)
        observation[name] = box
    return ActorCritic(observation, space_from_json(description["action"]), NetConfig.from_json(description["config"]))


def refuse_stateful_layers(policy: nn.Module) -> None:
    """Raise for BatchNorm or Dropout: the policy that learns would not be the one that acted (ratio ≠ 1)."""
    for name, module in policy.named_modules():
        kind = type(module).__name__
        drops = "Dropout" in kind and getattr(module, "p", 1.0) != 0.0
        drops |= isinstance(inside := getattr(module, "dropout", 0.0), float) and inside > 0.0  # LSTM, attention
        if drops or "BatchNorm" in kind or getattr(module, "track_running_stats", False):
            raise PolicyError(
                f"the policy has {kind} at '{name}': with identical weights it gives other probabilities when "
                "learning than when acting; use LayerNorm, or set allow_stateful_norm=True to insist"
            )
