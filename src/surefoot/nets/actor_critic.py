"""The standard policy: a network and a head for the actions; and the two ways to bring your own network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from surefoot.core.batch import Batch, Evaluation
from surefoot.data.seeds import seed_for
from surefoot.data.spaces import ActionSpace, ObservationSpace, space_to_json
from surefoot.errors import ConfigError, SpaceError
from surefoot.nets.config import NetConfig
from surefoot.nets.continuous_heads import HybridHead, StateDependentHead, make_head
from surefoot.nets.distributions import require_choice
from surefoot.nets.images import Parts, make_torso
from surefoot.nets.networks import Trunks, Walk
from surefoot.nets.own_network import Whole, check_whole, feature_size
from surefoot.nets.policy import PolicyInput, PolicyOutput
from surefoot.nets.torsos import Flatten


class ActorCritic(nn.Module):
    """A policy over any observation parts and any action space, with a memory if the config asks for one.

    Your own network: `torso`, a module from the dict of observations to features [B, F], on which actor and critic
    are built; or `network`, a module that gives (what the head needs [B, outputs], value [B]) all by itself.
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
        """The standard ones: the policy's, and behind it the critic's where that sees more. Empty with one of your own."""
        self.own_module = torso is not None or network is not None
        if torso is not None and network is not None:
            raise ConfigError("torso and network were both given; a whole network needs no torso: give one of them")
        if self.own_module and self.config.normalize_obs:
            raise ConfigError(
                "normalize_obs=True standardises for the standard torso only; put surefoot.nets.normalizer.Normalizer "
                "into your own module, or leave normalize_obs False"
            )
        if self.own_module and self.config.critic_only:
            raise ConfigError("critic_only is for the standard torso; a network of your own sees what it likes")
        if network is not None and self.sequential:
            raise ConfigError(
                "memory is put behind a torso; give a torso instead of a network, or set memory to 'none'"
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

    @property
    def flatten(self) -> Flatten | None:
        """The torso where it is nothing but a row: what the kernel knows."""
        match self.torsos:
            case [Flatten() as only]:
                return only
            case _:
                return None

    def act(self, inputs: PolicyInput, *, generator: torch.Generator, deterministic: bool = False) -> PolicyOutput:
        """Choose for N streams; memory and gSDE's exploration matrix come in and go out through the context."""
        if inputs.action_mask is not None:
            require_choice(inputs.action_mask, self.head.choices())
        walk = self._walk(inputs)
        raw, value, features = self.network(inputs.obs, walk)
        dist = self.head.distribution(raw, features, inputs.action_mask)
        context = inputs.context if walk is None else {**inputs.context, **walk.carry}
        if deterministic:
            action = dist.mode()
        elif isinstance(self.head, StateDependentHead | HybridHead) and (noise := self.head.noise()) is not None:
            context = {**context, **self._noise(noise, inputs.context, generator)}
            action = self.head.explore(dist, features, context["gsde"], generator)
        else:
            action = dist.sample(generator)
        log_prob = dist.log_prob(action)
        return PolicyOutput(action=action, value=value, log_prob=log_prob, distribution=dist, context=context)

    def value(self, inputs: PolicyInput) -> Tensor:
        """[N] expected returns."""
        return self.network.value(inputs.obs, self._walk(inputs))

    def critic_parameters(self) -> Iterator[nn.Parameter]:
        """What only the critic has; nothing but its last layer where it shares the rest with the actor."""
        own = {"critic", "critic_torso", "critic_memory", "value_out"}
        return (p for name, p in self.named_parameters() if own & set(name.split(".")))

    def evaluate(self, batch: Batch) -> Evaluation:
        """[T, B] log-probs, entropies and values of stored steps."""
        # One row a step: the layers then see plain matrices whatever T is.
        shape = batch.advantage.shape
        walk = Walk((shape[0], shape[1]), batch.start, batch.context) if self.sequential else None
        raw, value, features = self.network({name: part.flatten(0, 1) for name, part in batch.obs.items()}, walk)
        mask = None if batch.action_mask is None else batch.action_mask.flatten(0, 1)
        dist = self.head.distribution(raw, features, mask)
        log_prob = dist.log_prob(batch.action.flatten(0, 1))
        return Evaluation(log_prob.view(shape), dist.entropy().view(shape), value.view(shape))

    @torch.no_grad()
    def remembered(self, batch: Batch, at: Sequence[int]) -> list[dict[str, Tensor]]:
        """What each stream carries into the steps `at` (rising) under the weights of now; {name: [B, …]} for each."""
        assert isinstance(self.network, Trunks)
        assert batch.start is not None
        kept, now, carry = list[dict[str, Tensor]](), 0, batch.context
        for step in at:
            if step > now:
                rows = {name: part[now:step].flatten(0, 1) for name, part in batch.obs.items()}
                walk = Walk((step - now, batch.columns), batch.start[now:step], carry)
                self.network.walk_on(rows, walk)
                now, carry = step, walk.carry
            kept.append(carry)
        return kept

    def initial_context(self, streams: int) -> dict[str, Tensor]:
        """Empty memories and, with gSDE, an exploration matrix that is due for its first draw."""
        context = {name: memory.nothing(streams) for name, memory in self.network.memories().items()}
        if (noise := self.head.noise()) is None:
            return context
        std = noise.log_std
        return {
            **context,
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
        for torso in self.torsos:
            torso.absorb(obs)

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
        config, hidden = self.config, set(self.config.critic_only)
        if torso is not None:
            return Trunks(torso, feature_size(torso, self.observation), config)
        if missing := hidden - set(self.observation):
            parts = ", ".join(map(repr, self.observation))
            raise ConfigError(f"critic_only names {sorted(missing)[0]!r}; the observation has {parts}")
        visible = {name: box for name, box in self.observation.items() if name not in hidden}
        if hidden and not visible:
            raise SpaceError(
                f"critic_only is {config.critic_only}, so there are no parts left for the policy; leave it one"
            )
        own = make_torso(visible, config)
        self.torsos.append(own)
        if not hidden:
            return Trunks(own, own.size, config)
        judge = make_torso(self.observation, config)
        self.torsos.append(judge)
        return Trunks(own, own.size, config, (judge, judge.size))

    def _walk(self, inputs: PolicyInput) -> Walk | None:
        """One step of N streams, for a policy with memory."""
        if not self.sequential:
            return None
        memories = self.network.memories()
        start = None if inputs.start is None else inputs.start.unsqueeze(0)
        streams = len(inputs.context["memory"])
        return Walk((1, streams), start, {name: inputs.context[name] for name in memories})

    def _noise(
        self, head: StateDependentHead, context: dict[str, Tensor], generator: torch.Generator
    ) -> dict[str, Tensor]:
        age, every = int(context["gsde_age"][0]), self.config.gsde_every
        due = age == 0 or (every > 0 and age % every == 0)
        matrix = head.draw(len(context["gsde_age"]), generator) if due else context["gsde"]
        return {"gsde": matrix, "gsde_age": context["gsde_age"] + 1}
