"""The standard policy: a network and a head for the actions. Users can bring their own torso or network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from surefoot.core.batch import Batch, Evaluation
from surefoot.data.seeds import seed_for
from surefoot.data.spaces import ActionSpace, Box, ObservationSpace, space_from_json, space_to_json
from surefoot.errors import CheckpointCorrupt, CheckpointIncompatible, ConfigError, SpaceError, SurefootError
from surefoot.nets.config import NetConfig
from surefoot.nets.continuous_heads import HybridHead, StateDependentHead, make_head
from surefoot.nets.distributions import require_choice
from surefoot.nets.images import Parts, make_torso
from surefoot.nets.networks import CustomNetwork, Trunks, Walk, check_network, feature_size
from surefoot.nets.policy import PolicyInput, PolicyOutput
from surefoot.nets.torsos import Flatten


class ActorCritic(nn.Module):
    """A policy for any observation parts and any action space, recurrent if the config has a memory.

    Args:
        observation: {name: Box} of the observation's parts, as `make_world(...).observation`.
        action: The action space, as `make_world(...).action`.
        config: Layers, activation, noise, memory, normalisation. Default: `NetConfig()`.
        torso: Your own module from the dict of observations to features [B, F]; actor and critic are built on it.
        network: Your own module from the dict of observations to (head input [B, outputs], value [B]).
        seed: Seed of the initial weights.
    """

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
        self.sequential = self.config.memory != "none"
        self.torsos: list[Flatten | Parts] = []
        """The standard torsos: the policy's, then the critic's if it has its own. Empty with a custom module."""
        self.own_module = torso is not None or network is not None
        if torso is not None and network is not None:
            raise ConfigError("torso and network are both set; a network needs no torso: pass one of them")
        if self.own_module and self.config.normalize_obs:
            raise ConfigError(
                "normalize_obs=True works with the standard torso only; use surefoot.nets.normalizer.Normalizer "
                "inside your own module, or leave normalize_obs False"
            )
        if self.own_module and self.config.critic_only:
            raise ConfigError(
                "critic_only is for the standard torso; your own module receives every observation part: leave it empty"
            )
        if network is not None and self.sequential:
            raise ConfigError(
                "memory is placed behind a torso; pass a torso instead of a network, or set memory to 'none'"
            )
        # Modules draw their initial weights from torch's global generator: seed it here, and restore it afterwards.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed_for("weights", seed))
            self.network = self._trunks(torso) if network is None else CustomNetwork(network)
            features = self.network.features if isinstance(self.network, Trunks) else 0
            self.head = make_head(action, features, self.config)
            if isinstance(self.network, Trunks):
                self.network.with_outputs(self.head.outputs, ortho_init=self.config.ortho_init)
        if network is not None:
            if self.config.gsde:
                raise ConfigError("gsde=True needs the standard policy's features; pass a torso instead of a network")
            check_network(network, observation, self.head.outputs)

    @property
    def flatten(self) -> Flatten | None:
        """The torso if it only flattens, which is the kind that the kernel supports; else None."""
        match self.torsos:
            case [Flatten() as only]:
                return only
            case _:
                return None

    def act(self, inputs: PolicyInput, *, generator: torch.Generator, deterministic: bool = False) -> PolicyOutput:
        """Return actions of N streams; memory and gSDE's exploration matrix are passed in and out in the context."""
        if inputs.action_mask is not None:
            require_choice(inputs.action_mask, self.head.choices())
        walk = self._walk(inputs)
        raw, value, features = self.network(inputs.obs, walk)
        dist = self.head.distribution(raw, features, inputs.action_mask)
        context = inputs.context if walk is None else {**inputs.context, **walk.carry}
        if deterministic:
            action = dist.mode()
        elif isinstance(self.head, StateDependentHead | HybridHead) and (noise := self.head.noise()) is not None:
            age, every = int(inputs.context["gsde_age"][0]), self.config.gsde_every
            due = age == 0 or (every > 0 and age % every == 0)
            matrix = noise.draw(len(value), generator) if due else inputs.context["gsde"]
            context = {**context, "gsde": matrix, "gsde_age": inputs.context["gsde_age"] + 1}
            action = self.head.explore(dist, features, matrix, generator)
        else:
            action = dist.sample(generator)
        log_prob = dist.log_prob(action)
        return PolicyOutput(action=action, value=value, log_prob=log_prob, distribution=dist, context=context)

    def value(self, inputs: PolicyInput) -> Tensor:
        """Return the expected returns, [N]."""
        return self.network.value(inputs.obs, self._walk(inputs))

    def critic_parameters(self) -> Iterator[nn.Parameter]:
        """Return the parameters that only the critic has; its last layer alone if the trunk is shared."""
        critic = {"critic", "critic_torso", "critic_memory", "value_out"}
        return (p for name, p in self.named_parameters() if critic & set(name.split(".")))

    def evaluate(self, batch: Batch) -> Evaluation:
        """Return log-probs, entropies and values of stored steps, [T, B]."""
        # One row per step: the layers then get plain matrices for every T.
        shape = batch.advantage.shape
        walk = Walk((shape[0], shape[1]), batch.start, batch.context) if self.sequential else None
        raw, value, features = self.network({name: part.flatten(0, 1) for name, part in batch.obs.items()}, walk)
        mask = None if batch.action_mask is None else batch.action_mask.flatten(0, 1)
        dist = self.head.distribution(raw, features, mask)
        log_prob = dist.log_prob(batch.action.flatten(0, 1))
        return Evaluation(log_prob.view(shape), dist.entropy().view(shape), value.view(shape))

    @torch.no_grad()
    def remembered(self, batch: Batch, steps: Sequence[int]) -> list[dict[str, Tensor]]:
        """Return the memory {name: [B, …]} before each of `steps` (ascending) under the current weights."""
        assert isinstance(self.network, Trunks)
        assert batch.start is not None
        contexts, now, carry = list[dict[str, Tensor]](), 0, batch.context
        for step in steps:
            if step > now:
                rows = {name: part[now:step].flatten(0, 1) for name, part in batch.obs.items()}
                walk = Walk((step - now, batch.columns), batch.start[now:step], carry)
                self.network.walk_on(rows, walk)
                now, carry = step, walk.carry
            contexts.append(carry)
        return contexts

    def initial_context(self, streams: int) -> dict[str, Tensor]:
        """Return empty memories and, with gSDE, an exploration matrix that the first step replaces."""
        context = {name: memory.empty(streams) for name, memory in self.network.memories().items()}
        if (noise := self.head.noise()) is None:
            return context
        std = noise.log_std
        return {
            **context,
            "gsde": torch.zeros((streams, *std.shape), device=std.device),
            "gsde_age": torch.zeros(streams, dtype=torch.int64),
        }

    def renew_context(self, context: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the context; a gSDE matrix depends on the std it was drawn with, so a new rollout draws a new one."""
        return {**context, "gsde_age": torch.zeros_like(context["gsde_age"])} if "gsde_age" in context else context

    def env_action(self, action: np.ndarray) -> np.ndarray:
        """Return actions in the environment's form."""
        return self.head.env_action(action)

    def absorb(self, obs: dict[str, np.ndarray]) -> None:
        """Update the observation statistics, if this policy has any."""
        for torso in self.torsos:
            torso.absorb(obs)

    def action_std(self) -> float | None:
        """Return the mean standard deviation of Gaussian heads."""
        return self.head.action_std()

    def choices(self) -> tuple[int, ...]:
        """Return the number of options of each discrete choice."""
        return self.head.choices()

    def describe(self) -> dict[str, Any]:
        """Return spaces and config: enough for `policy_from_description`, unless a custom module is inside."""
        return {
            "kind": "actor_critic",
            "own_module": self.own_module,
            "observation": {name: space_to_json(box) for name, box in self.observation.items()},
            "action": space_to_json(self.action),
            "config": self.config.to_json(),
        }

    def _trunks(self, torso: nn.Module | None) -> Trunks:
        config, hidden = self.config, set(self.config.critic_only)
        if torso is not None:
            return Trunks(torso, feature_size(torso, self.observation), config)
        if missing := hidden - set(self.observation):
            parts = ", ".join(map(repr, self.observation))
            raise ConfigError(f"critic_only names {sorted(missing)[0]!r}; the observation has {parts}")
        visible = {name: box for name, box in self.observation.items() if name not in hidden}
        if hidden and not visible:
            raise SpaceError(
                f"critic_only is {config.critic_only}, so the policy has no observation part left; leave it at least one"
            )
        actor = make_torso(visible, config)
        self.torsos.append(actor)
        if not hidden:
            return Trunks(actor, actor.size, config)
        critic = make_torso(self.observation, config)
        self.torsos.append(critic)
        return Trunks(actor, actor.size, config, (critic, critic.size))

    def _walk(self, inputs: PolicyInput) -> Walk | None:
        """Return one step of N streams for a policy with memory; None without memory."""
        if not self.sequential:
            return None
        memories = self.network.memories()
        start = None if inputs.start is None else inputs.start.unsqueeze(0)
        streams = len(inputs.context["memory"])
        return Walk((1, streams), start, {name: inputs.context[name] for name in memories})


def policy_from_description(description: dict[str, Any]) -> ActorCritic:
    """Return the architecture that `ActorCritic.describe` described, with new weights."""
    try:
        if (kind := str(description.get("kind"))) != "actor_critic":
            raise CheckpointIncompatible(f"a policy of kind {kind!r} cannot be built from its description")
        if bool(description["own_module"]):
            raise CheckpointIncompatible("this policy contains your own network: build it and pass it as policy=")
        observation: ObservationSpace = {}
        for name, spec in description["observation"].items():
            box = space_from_json(spec)
            if not isinstance(box, Box):
                raise SpaceError(f"the observation {name!r} is no box but {box}")
            observation[name] = box
        action, config = space_from_json(description["action"]), NetConfig.from_json(description["config"])
        return ActorCritic(observation, action, config)
    except SurefootError:
        raise  # it names the thing already
    # A checkpoint may be made up.
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RuntimeError, MemoryError) as error:
        raise CheckpointCorrupt(f"the description of the policy is damaged: {type(error).__name__}: {error}") from error
