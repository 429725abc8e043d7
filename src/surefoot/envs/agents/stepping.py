"""One copy of a multi-agent env with either of PettingZoo's interfaces: all agents act together, or in turns.

Only methods of PettingZoo's ParallelEnv and AECEnv are used, so an env with these methods works without PettingZoo. Agents
that are not streams (`AgentOptions.agents` leaves them out) are played inside a step by `others`.
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
"""(agent, observation, info) → action, in the env's format."""

# Far more turns than any game has; without a limit, an env that never selects a stream's agent would hang the run.
MAX_OTHER_TURNS = 10_000


@runtime_checkable
class ParallelEnv(Protocol):
    """All agents act together, as in PettingZoo's ParallelEnv; `agents` are those that are active now."""

    agents: Any

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any: ...
    def step(self, actions: Any, /) -> Any: ...
    def observation_space(self, agent: Any, /) -> gym.Space[Any]: ...
    def action_space(self, agent: Any, /) -> gym.Space[Any]: ...


@runtime_checkable
class TurnEnv(Protocol):
    """One agent acts at a time, as in PettingZoo's AECEnv; `agent_selection` is the one to act."""

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any: ...
    def step(self, action: Any, /) -> Any: ...
    def observe(self, agent: Any, /) -> Any: ...
    def last(self, observe: bool = True) -> Any: ...
    def observation_space(self, agent: Any, /) -> gym.Space[Any]: ...
    def action_space(self, agent: Any, /) -> gym.Space[Any]: ...


def is_many_agents(env: Any) -> bool:
    """Return whether `env` is a multi-agent env of either kind; False for a class or function that builds one."""
    # Many parallel envs have `agents` only after a reset, so the check is for the methods.
    needs = ("reset", "step", "observation_space", "action_space", "possible_agents")
    return not isinstance(env, type) and not isinstance(env, gym.Env) and all(hasattr(env, name) for name in needs)


@dataclass(slots=True, kw_only=True)
class AgentMoment:
    """The result of one step of one copy by agent; only of agents that are streams."""

    obs: dict[Agent, Any]
    """Observations of the agents that are active now."""
    info: Mapping[Any, Mapping[str, Any]]
    reward: dict[Agent, float] = field(default_factory=dict[Agent, float])
    ended: dict[Agent, tuple[bool, Any]] = field(default_factory=dict[Agent, tuple[bool, Any]])
    """(True if terminated, False if truncated; the last observation, None if the env returned none)."""
    over: bool = False
    """No agent is left."""
    turn: Agent | None = None
    """The only agent whose action counts next; None if all do."""
    everything: np.ndarray | None = None
    """What a central critic observes; computed at first use."""


class Copy(Protocol):
    """One env of an `AgentsWorld`."""

    env: Any
    others: Others

    def reset(self, seed: int) -> AgentMoment: ...
    def step(self, actions: dict[Agent, Any]) -> AgentMoment: ...
    def state(self) -> dict[str, Any]: ...
    def set_state(self, state: dict[str, Any]) -> None: ...


class RandomOthers:
    """Play uniformly random legal actions."""

    def __init__(self, env: Any) -> None:
        self.env = env
        self.rng = np.random.default_rng(0)

    def __call__(self, agent: Agent, obs: Any, info: Mapping[str, Any]) -> Any:
        space = self.env.action_space(agent)
        space.seed(int(self.rng.integers(2**31)))
        mask = obs[MASK] if isinstance(obs, Mapping) and MASK in obs else info.get(MASK)
        return space.sample(None if mask is None else np.asarray(mask, np.int8))


class ParallelCopy:
    """One ParallelEnv."""

    def __init__(self, env: Any, agents: Sequence[Agent], others: Others) -> None:
        self.env, self.agents, self.others = env, tuple(agents), others
        self._other_views: dict[Agent, tuple[Any, Mapping[str, Any]]] = {}
        """Observation and info of the agents that `others` plays."""

    def reset(self, seed: int) -> AgentMoment:
        obs, info = self.env.reset(seed=seed)
        return self._moment(obs, info, {}, {})

    def step(self, actions: dict[Agent, Any]) -> AgentMoment:
        replies = {agent: self.others(agent, *view) for agent, view in self._other_views.items()}
        obs, reward, terminated, truncated, info = self.env.step({**actions, **replies})
        ended: dict[Agent, tuple[bool, Any]] = {}
        for agent in actions:
            if terminated.get(agent) or truncated.get(agent):
                ended[agent] = (bool(terminated.get(agent)), obs.get(agent))
            elif agent not in self.env.agents:
                raise EnvError(
                    f"{agent} left the env without having ended; set its termination or its truncation to True in the "
                    "step in which it leaves"
                )
        return self._moment(obs, info, {agent: float(reward.get(agent, 0.0)) for agent in actions}, ended)

    def _moment(
        self, obs: Any, info: Any, reward: dict[Agent, float], ended: dict[Agent, tuple[bool, Any]]
    ) -> AgentMoment:
        active = [agent for agent in self.env.agents if agent not in ended]
        self._other_views = {a: (obs[a], info.get(a) or {}) for a in active if a not in self.agents}
        views = {agent: obs[agent] for agent in active if agent in self.agents}
        return AgentMoment(obs=views, info=info, reward=reward, ended=ended, over=not active)

    def state(self) -> dict[str, Any]:
        views = {str(i): pack(self._other_views.get(agent)) for i, agent in enumerate(self.env.possible_agents)}
        return {"strangers": views}

    def set_state(self, state: dict[str, Any]) -> None:
        known = list(self.env.possible_agents)
        views = {known[int(i)]: unpack(value) for i, value in state["strangers"].items()}
        self._other_views = {agent: value for agent, value in views.items() if value is not None}


class TurnCopy:
    """One AECEnv. A step is one turn of a stream's agent, and the turns of others until the next such turn.

    Rewards are read by name after every turn, so an agent gets what it earns while others move. `last()` is not used: it
    reports the reward of the next agent (PettingZoo#1203).
    """

    def __init__(self, env: Any, agents: Sequence[Agent], others: Others) -> None:
        self.env, self.agents, self.others = env, tuple(agents), others
        self._active: set[Agent] = set()
        self._earned: dict[Agent, float] = {}
        self._ended: dict[Agent, tuple[bool, Any]] = {}

    def reset(self, seed: int) -> AgentMoment:
        self.env.reset(seed=seed)
        self._active, self._earned, self._ended = set(), {}, {}
        self._join()
        self._play_others()
        moment = self._moment()
        moment.ended = {}  # an agent that ends before its first turn has no episode
        return moment

    def step(self, actions: dict[Agent, Any]) -> AgentMoment:
        self._ended = {}
        self.env.step(actions[self.env.agent_selection])
        self._after_turn()
        self._play_others()
        moment = self._moment()
        moment.reward = {agent: self._earned.pop(agent, 0.0) for agent in self._active | set(self._ended)}
        return moment

    def _moment(self) -> AgentMoment:
        env = self.env
        return AgentMoment(
            obs={agent: env.observe(agent) for agent in self.agents if agent in self._active},
            info=env.infos,
            ended=self._ended,
            over=not env.agents,
            turn=env.agent_selection if env.agents else None,
        )

    def _after_turn(self) -> None:
        """Add up rewards, and record which agents left and which joined."""
        env = self.env
        for agent in tuple(self._active):
            self._earned[agent] = self._earned.get(agent, 0.0) + float(env.rewards.get(agent, 0.0))
            if self._has_left(agent):
                self._active.remove(agent)
                terminated = agent not in env.agents or bool(env.terminations.get(agent))
                self._ended[agent] = (terminated, env.observe(agent) if agent in env.agents else None)
        self._join()

    def _join(self) -> None:
        self._active |= {agent for agent in self.agents if not self._has_left(agent)}

    def _has_left(self, agent: Agent) -> bool:
        env = self.env
        return agent not in env.agents or bool(env.terminations.get(agent)) or bool(env.truncations.get(agent))

    def _play_others(self) -> None:
        """Play until it is the turn of a stream's agent, or no agent is left."""
        env = self.env
        for _ in range(MAX_OTHER_TURNS):
            if not env.agents:
                return
            agent = env.agent_selection
            if self._has_left(agent):
                env.step(None)  # only removes the dead agent; the rewards it shows now are counted already
                self._join()
            elif agent in self.agents:
                return
            else:
                env.step(self.others(agent, env.observe(agent), env.infos.get(agent) or {}))
                self._after_turn()
        raise EnvError(f"none of {list(self.agents)} had a turn within {MAX_OTHER_TURNS:,} turns of the others")

    def state(self) -> dict[str, Any]:
        numbers = {agent: i for i, agent in enumerate(self.agents)}
        return {
            "there": sorted(numbers[agent] for agent in self._active),
            "earned": {str(numbers[agent]): amount for agent, amount in self._earned.items()},
        }

    def set_state(self, state: dict[str, Any]) -> None:
        self._active = {self.agents[i] for i in state["there"]}
        self._earned = {self.agents[int(i)]: amount for i, amount in state["earned"].items()}
        self._ended = {}
