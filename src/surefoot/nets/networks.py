"""Networks: from the dict of observations to what the action head needs, a value, and the actor's features."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from surefoot.nets.config import NetConfig
from surefoot.nets.recurrent import Memory
from surefoot.nets.torsos import layer, mlp


def through(layers: nn.Sequential, x: Tensor) -> Tensor:
    """What the layers make of `x`. Calling a module costs as much as a small matrix product; nobody hooks these."""
    for module in layers:
        x = module.forward(x)
    return x


@dataclass(slots=True)
class Walk:
    """How rows lie in time for a policy with memory, and what its streams carry; `carry` is replaced, never changed."""

    shape: tuple[int, int]
    """[T, B]; the rows are T·B, time first."""
    start: Tensor | None
    """[T, B] bool: an episode begins here."""
    carry: dict[str, Tensor]
    """{name of a memory: [B, …]}"""


class Trunks(nn.Module):
    """A torso, a memory if asked for, then layers: once for the actor and once for the critic (both the same if `shared`).

    The critic has a torso of its own where it sees more than the actor does.
    """

    critic: nn.Sequential

    def __init__(
        self, torso: nn.Module, inputs: int, config: NetConfig, judge: tuple[nn.Module, int] | None = None
    ) -> None:
        super().__init__()
        ortho, remembers = config.ortho_init, config.memory != "none"
        critic_hidden = config.hidden if config.critic_hidden is None or config.shared else config.critic_hidden
        self.torso, self.critic_torso, critic_inputs = torso, None, inputs
        if judge is not None:
            self.critic_torso, critic_inputs = judge
        self.memory = self.critic_memory = None
        if remembers:
            self.memory = Memory(config.memory, inputs, config.memory_size, ortho_init=ortho)
            if not config.shared:
                self.critic_memory = Memory(config.memory, critic_inputs, config.memory_size, ortho_init=ortho)
            inputs = critic_inputs = config.memory_size
        self.features = config.hidden[-1] if config.hidden else inputs
        self.actor = mlp(inputs, config.hidden, activation=config.activation, ortho_init=ortho)
        if config.shared:
            # Past torch's registry: a module registered by two names is in the state dict twice.
            self.__dict__["critic"] = self.actor
        else:
            self.critic = mlp(critic_inputs, critic_hidden, activation=config.activation, ortho_init=ortho)
        critic_features = critic_hidden[-1] if critic_hidden else critic_inputs
        self.value_out = layer(critic_features, 1, gain=1.0, ortho_init=ortho)
        self.policy_out: nn.Module = nn.Identity()

    def with_outputs(self, outputs: int, *, ortho_init: bool) -> Trunks:
        """Itself, with the actor's last layer: gain 0.01, so that the first policy is nearly uniform (detail C2)."""
        self.policy_out = layer(self.features, outputs, gain=0.01, ortho_init=ortho_init)
        return self

    def forward(self, obs: dict[str, Tensor], walk: Walk | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """What the head needs, the value, and the actor's features, a row each; `walk` carries on what is remembered."""
        seen = self.torso(obs)
        x = self._remember("memory", self.memory, seen, walk)
        features = through(self.actor, x)
        if self.critic is self.actor:
            judged = features
        else:
            seen = seen if self.critic_torso is None else self.critic_torso(obs)
            judged = through(self.critic, self._remember("critic_memory", self.critic_memory, seen, walk))
        return self.policy_out.forward(features), self.value_out.forward(judged).squeeze(-1), features

    def value(self, obs: dict[str, Tensor], walk: Walk | None = None) -> Tensor:
        """The critic alone."""
        name, memory = (
            ("critic_memory", self.critic_memory) if self.critic_memory is not None else ("memory", self.memory)
        )
        x = self._remember(name, memory, self._judge(obs), walk)
        return self.value_out.forward(through(self.critic, x)).squeeze(-1)

    def walk_on(self, obs: dict[str, Tensor], walk: Walk) -> None:
        """The memories alone: carry them over these steps."""
        for name, memory in self.memories().items():
            self._remember(name, memory, self.torso(obs) if name == "memory" else self._judge(obs), walk)

    def memories(self) -> dict[str, Memory]:
        """{name in the context: memory}"""
        both = {"memory": self.memory, "critic_memory": self.critic_memory}
        return {name: memory for name, memory in both.items() if memory is not None}

    def _judge(self, obs: dict[str, Tensor]) -> Tensor:
        """What the critic's torso sees."""
        return (self.torso if self.critic_torso is None else self.critic_torso)(obs)

    def _remember(self, name: str, memory: Memory | None, x: Tensor, walk: Walk | None) -> Tensor:
        if memory is None:
            return x
        assert walk is not None, "a policy with memory must be told how its rows lie in time"
        hidden, carried = memory.forward(x.unflatten(0, walk.shape), walk.carry[name], walk.start)
        walk.carry = {**walk.carry, name: carried}
        return hidden.flatten(0, 1)
