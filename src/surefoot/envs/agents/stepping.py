"""One copy of an env with many agents, whichever way it is stepped: all at once, or one after the other.

What is asked of an env is what PettingZoo's ParallelEnv and AECEnv have, so an env of those names' methods needs no
PettingZoo. Agents that are not learned from (`agents` leaves them out) are played inside a step by `others`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import gymnasium as gym
import numpy as np

from surefoot.envs.gym.snapshot import pack, unpack
from surefoot.envs.gym.spaces import MASK
from surefoot.errors import EnvError

Agent = Hashable
Others = Callable[[Any, Any, Mapping[str, Any]], Any]
"""(agent, its observation, its info) → its action, as the env takes it."""

LONGEST_ABSENCE = 10_000
"""Turns of other agents after which a world no longer waits for one of its own to be asked."""


@runtime_checkable
class ParallelEnv(Protocol):
    """All agents act at once, as PettingZoo's ParallelEnv; `agents` are those that are there now."""

    agents: Any

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any: ...
    def step(self, actions: Any, /) -> Any: ...
    def observation_space(self, agent: Any, /) -> gym.Space[Any]: ...
    def action_space(self, agent: Any, /) -> gym.Space[Any]: ...


@runtime_checkable
class TurnEnv(Protocol):
    """One agent acts at a time, as PettingZoo's AECEnv; `agent_selection` is whose turn it is."""

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any: ...
    def step(self, action: Any, /) -> Any: ...
    def observe(self, agent: Any, /) -> Any: ...
    def last(self, observe: bool = True) -> Any: ...
    def observation_space(self, agent: Any, /) -> gym.Space[Any]: ...
    def action_space(self, agent: Any, /) -> gym.Space[Any]: ...


def is_many_agents(env: Any) -> bool:
    """True for an env with agents, of either kind; a class or a function is none, it builds one."""
    # `agents` only exists after a reset in many parallel envs, so what is looked for are the methods.
    needs = ("reset", "step", "observation_space", "action_space", "possible_agents")
    return not isinstance(env, type) and not isinstance(env, gym.Env) and all(hasattr(env, name) for name in needs)


@dataclass(slots=True, kw_only=True)
class AgentMoment:
    """What one step of one copy came to, told by agent; only of those that are learned from."""

    seen: dict[Agent, Any]
    """What each agent sees that is there now."""
    info: Mapping[Any, Mapping[str, Any]]
    reward: dict[Agent, float] = field(default_factory=dict[Agent, float])
    ended: dict[Agent, tuple[bool, Any]] = field(default_factory=dict[Agent, tuple[bool, Any]])
    """(terminated, or else truncated; the last observation, None if the env gave none)."""
    over: bool = False
    """No agent is left."""
    turn: Agent | None = None
    """The only one whose action counts next; None if everybody's does."""
    everything: np.ndarray | None = None
    """What a central critic sees, once somebody has asked."""


class Copy(Protocol):
    """One env as its world sees it."""

    env: Any
    others: Others

    def reset(self, seed: int) -> AgentMoment: ...
    def step(self, actions: dict[Agent, Any]) -> AgentMoment: ...
    def state(self) -> dict[str, Any]: ...
    def set_state(self, state: dict[str, Any]) -> None: ...


class RandomOthers:
    """Plays any legal action, all equally likely."""

    def __init__(self, env: Any) -> None:
        self.env = env
        self.rng = np.random.default_rng(0)

    def __call__(self, agent: Agent, obs: Any, info: Mapping[str, Any]) -> Any:
        space = self.env.action_space(agent)
        space.seed(int(self.rng.integers(2**31)))
        inside = obs[MASK] if isinstance(obs, Mapping) and MASK in obs else info.get(MASK)
        return space.sample(None if inside is None else np.asarray(inside, np.int8))


class ParallelCopy:
    """One ParallelEnv."""

    def __init__(self, env: Any, agents: Sequence[Agent], others: Others) -> None:
        self.env, self.agents, self.others = env, tuple(agents), others
        self._strangers: dict[Agent, tuple[Any, Mapping[str, Any]]] = {}
        """What those see who are played here."""

    def reset(self, seed: int) -> AgentMoment:
        obs, info = self.env.reset(seed=seed)
        return self._now(obs, info, {}, {})

    def step(self, actions: dict[Agent, Any]) -> AgentMoment:
        replies = {agent: self.others(agent, *seen) for agent, seen in self._strangers.items()}
        obs, reward, terminated, truncated, info = self.env.step({**actions, **replies})
        ended: dict[Agent, tuple[bool, Any]] = {}
        for agent in actions:
            if terminated.get(agent) or truncated.get(agent):
                ended[agent] = (bool(terminated.get(agent)), obs.get(agent))
            elif agent not in self.env.agents:
                raise EnvError(
                    f"{agent} left the env without having ended; set its termination or its truncation to True in the "
                    "step it leaves"
                )
        return self._now(obs, info, {agent: float(reward.get(agent, 0.0)) for agent in actions}, ended)

    def _now(
        self, obs: Any, info: Any, reward: dict[Agent, float], ended: dict[Agent, tuple[bool, Any]]
    ) -> AgentMoment:
        there = [agent for agent in self.env.agents if agent not in ended]
        self._strangers = {a: (obs[a], info.get(a) or {}) for a in there if a not in self.agents}
        seen = {agent: obs[agent] for agent in there if agent in self.agents}
        return AgentMoment(seen=seen, info=info, reward=reward, ended=ended, over=not there)

    def state(self) -> dict[str, Any]:
        strangers = {str(i): pack(self._strangers.get(agent)) for i, agent in enumerate(self.env.possible_agents)}
        return {"strangers": strangers}

    def set_state(self, state: dict[str, Any]) -> None:
        known = list(self.env.possible_agents)
        kept = {known[int(i)]: unpack(value) for i, value in state["strangers"].items()}
        self._strangers = {agent: value for agent, value in kept.items() if value is not None}


class TurnCopy:
    """One AECEnv. A step is one turn of an agent that is learned from, and those of others until the next such turn.

    Rewards are read by name after every turn, so what an agent earns while others move is its own, and nobody gets
    what `last()` says of the next one (PettingZoo#1203).
    """

    def __init__(self, env: Any, agents: Sequence[Agent], others: Others) -> None:
        self.env, self.agents, self.others = env, tuple(agents), others
        self._there: set[Agent] = set()
        self._earned: dict[Agent, float] = {}
        self._ended: dict[Agent, tuple[bool, Any]] = {}

    def reset(self, seed: int) -> AgentMoment:
        self.env.reset(seed=seed)
        self._there, self._earned, self._ended = set(), {}, {}
        self._join()
        self._play_others()
        moment = self._now()
        moment.ended = {}  # who was gone before its first turn has not been
        return moment

    def step(self, actions: dict[Agent, Any]) -> AgentMoment:
        self._ended = {}
        self.env.step(actions[self.env.agent_selection])
        self._note()
        self._play_others()
        moment = self._now()
        moment.reward = {agent: self._earned.pop(agent, 0.0) for agent in self._there | set(self._ended)}
        return moment

    def _now(self) -> AgentMoment:
        env = self.env
        return AgentMoment(
            seen={agent: env.observe(agent) for agent in self.agents if agent in self._there},
            info=env.infos,
            ended=self._ended,
            over=not env.agents,
            turn=env.agent_selection if env.agents else None,
        )

    def _note(self) -> None:
        """After a turn: who earned what, who is gone, who came."""
        env = self.env
        for agent in tuple(self._there):
            self._earned[agent] = self._earned.get(agent, 0.0) + float(env.rewards.get(agent, 0.0))
            if self._is_gone(agent):
                self._there.remove(agent)
                terminated = agent not in env.agents or bool(env.terminations.get(agent))
                self._ended[agent] = (terminated, env.observe(agent) if agent in env.agents else None)
        self._join()

    def _join(self) -> None:
        self._there |= {agent for agent in self.agents if not self._is_gone(agent)}

    def _is_gone(self, agent: Agent) -> bool:
        env = self.env
        return agent not in env.agents or bool(env.terminations.get(agent)) or bool(env.truncations.get(agent))

    def _play_others(self) -> None:
        """Go on until it is the turn of an agent that is learned from, or nobody is left."""
        env = self.env
        for _ in range(LONGEST_ABSENCE):
            if not env.agents:
                return
            agent = env.agent_selection
            if self._is_gone(agent):
                env.step(None)  # it only takes the dead one away; what `rewards` says now has been counted
                self._join()
            elif agent in self.agents:
                return
            else:
                env.step(self.others(agent, env.observe(agent), env.infos.get(agent) or {}))
                self._note()
        raise EnvError(f"none of {list(self.agents)} had a turn within {LONGEST_ABSENCE:,} turns of the others")

    def state(self) -> dict[str, Any]:
        numbers = {agent: i for i, agent in enumerate(self.agents)}
        return {
            "there": sorted(numbers[agent] for agent in self._there),
            "earned": {str(numbers[agent]): amount for agent, amount in self._earned.items()},
        }

    def set_state(self, state: dict[str, Any]) -> None:
        self._there = {self.agents[i] for i in state["there"]}
        self._earned = {self.agents[int(i)]: amount for i, amount in state["earned"].items()}
        self._ended = {}
