"""`AgentsWorld`: M copies of a multi-agent env with A agents each are M·A streams of one policy.

An agent that is not active (dead, or not yet joined) has rows that are not `valid`, all zeros; its first valid row starts
an episode. The learner needs no knowledge of agents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from surefoot.data.spaces import Box, ObservationSpace, choice_sizes
from surefoot.envs.agents.stepping import (
    Agent,
    AgentMoment,
    Copy,
    Others,
    ParallelCopy,
    RandomOthers,
    TurnCopy,
    TurnEnv,
)
from surefoot.envs.agents.stepping import is_many_agents as is_many_agents
from surefoot.envs.api import Arrays, Step, View, World
from surefoot.envs.gym.snapshot import pack, rng_from_json, rng_to_json, unpack
from surefoot.envs.gym.spaces import (
    MASK,
    ObservationReader,
    action_from_gym,
    action_writer,
    choices,
    missing_mask,
    observation_reader,
    read_mask,
    refuse_empty,
)
from surefoot.envs.gym.vector_env import build_env, restart_seed, view_from_state, view_to_state
from surefoot.errors import CheckpointIncompatible, ConfigError, EnvError, ShapeError, SpaceError, SurefootError

STATE, AGENT_ID = "state", "agent"
"""Observation parts that `central` and `agent_id` add."""
# Episodes that end before any agent acts, in a row, after which the env counts as broken instead of unlucky.
MAX_EMPTY_EPISODES = 100
# PettingZoo's wrappers whose only state is whether there was a reset.
_STATELESS = ("OrderEnforcingWrapper", "AssertOutOfBoundsWrapper", "ClipOutOfBoundsWrapper", "CaptureStdoutWrapper")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    """Which of an env's agents are streams, and what a stream sees besides its observation."""

    agents: Sequence[Any] | None = None
    """Agents that are streams; None for all. `others` plays the remaining ones."""
    others: Others | None = None
    """(agent, observation, info) → action; None plays random legal actions. It must be stateless."""
    central: bool = False
    """Add the part "state" for a central critic: env.state() if there is one, otherwise all observations."""
    agent_id: bool = False
    """Add the part "agent": the agent's number, one-hot."""


def agents_world(env: Any, num_envs: int = 1, *, name: str | None = None, **options: Any) -> AgentsWorld:
    """Return a world of `num_envs` copies of a PettingZoo env; each agent is one stream.

    An AECEnv that is parallelizable is stepped as a ParallelEnv. In any other, agents take turns, and one that waits has a
    row with a single allowed action, which does nothing.

    Args:
        env: A ParallelEnv, an AECEnv, or a function that builds one.
        num_envs: Number of copies; 1 for an env that exists already.
        name: Name of the world; None for the env's.
        **options: Fields of `AgentOptions`: `agents`, `others`, `central`, `agent_id`.
    """
    if num_envs < 1:
        raise ConfigError(f"num_envs is {num_envs}; a world needs at least 1 copy of its env")
    if is_many_agents(env):
        if num_envs > 1:
            raise ConfigError(
                f"{num_envs} copies cannot share one {_title(env)}; pass the function that builds it, such as parallel_env"
            )
        return AgentsWorld([env], AgentOptions(**options), name)
    if not callable(env):
        raise EnvError(f"{type(env).__name__} has no agents; pass a PettingZoo ParallelEnv, an AECEnv or a function")
    envs = [build_env(env) for _ in range(num_envs)]
    for built in envs:
        if not is_many_agents(built):
            kind = type(built).__name__
            raise EnvError(f"the function built a {kind}, which has no agents; it must build a ParallelEnv or AECEnv")
    return AgentsWorld(envs, AgentOptions(**options), name)


class AgentsWorld(World):
    """Copies of one env, stepped one after the other; stream c·A + a is agent a of copy c.

    Single streams cannot be reset: all agents of a copy start together.
    """

    backend = "pettingzoo"

    def __init__(self, envs: Sequence[Any], options: AgentOptions | None = None, name: str | None = None) -> None:
        self.options = options or AgentOptions()
        envs = [_as_parallel(env) for env in envs]
        first = envs[0]
        self.name = name or _title(first)
        self.agents = _chosen_agents(first, self.options.agents, self.name)
        """The names of a copy's streams, in order."""
        self.copies: list[Copy] = []
        for env in envs:
            kind = TurnCopy if isinstance(env, TurnEnv) else ParallelCopy
            self.copies.append(kind(env, self.agents, self.options.others or RandomOthers(env)))
        self.num_envs = len(envs) * len(self.agents)
        self.gym_spaces = _common_spaces(first, self.agents, self.name)
        self.action = action_from_gym(self.gym_spaces[1], self.name)
        self._choices = choices(self.action)
        self._reader = observation_reader(self.gym_spaces[0], self.name, masks=self._choices > 0)
        self._waits = isinstance(self.copies[0], TurnCopy) and len(self.agents) > 1
        if self._waits and not self._choices:
            raise SpaceError(
                f"the agents of {self.name} take turns and act in {self.gym_spaces[1]}, so a waiting agent cannot be masked; "
                f"use discrete actions, or one learning agent per copy: agents=[{next(iter(self.agents))!r}]"
            )
        self._critic_view = _critic_view(first, self._reader, self.name) if self.options.central else None
        self.observation: ObservationSpace = dict(self._reader.space)
        extras = {} if self._critic_view is None else {STATE: self._critic_view.box}
        extras |= {AGENT_ID: Box((len(self.agents),), 0.0, 1.0)} if self.options.agent_id else {}
        for part, box in extras.items():
            if part in self.observation:
                raise SpaceError(f"the observation of {self.name} already has a part {part!r}; rename it there")
            self.observation[part] = box
        # A waiting agent may only take the first option of each choice.
        self._still = np.concatenate([np.ones(0, np.bool_), *(np.arange(n) == 0 for n in choice_sizes(self.action))])
        self._write_action = action_writer(self.gym_spaces[1])
        self._numbers = {agent: a for a, agent in enumerate(self.agents)}
        if stateless := [layer for env in envs if not _has_state(layer := _state_layer(env))]:
            self.inexact = (
                f"{self.name}: {type(stateless[0]).__name__} does not export its state; add get_state() and "
                "set_state(state) for an exact resume"
            )
        self._masked = self._waits or self._reader.masked
        self._view: View | None = None
        self._active = np.zeros(self.num_envs, np.bool_)
        self._episodes = np.zeros(len(envs), np.int64)
        self._seed = self._count = 0

    def reset(self, seed: int) -> View:
        self._seed, self._count = seed, 0
        self._episodes[:] = 0
        for c, copy in enumerate(self.copies):
            if isinstance(copy.others, RandomOthers):
                copy.others.rng = np.random.default_rng([seed, c])
        moments = [self._first_moment(c) for c in range(len(self.copies))]
        in_info = any(MASK in (moment.info.get(agent) or {}) for moment in moments for agent in moment.obs)
        self._masked = self._waits or self._reader.masked or (self._choices > 0 and in_info)
        view = self._blank()
        for c, moment in enumerate(moments):
            self._fill_copy(view, c, moment)
        return self._publish(view)

    def step(self, action: np.ndarray) -> Step:
        if self._view is None:
            raise EnvError(f"{self.name} was stepped before its first reset; call reset(seed) once")
        if len(action) != self.num_envs:
            raise ShapeError(f"{len(action)} actions for the {self.num_envs} streams of {self.name}; each needs one")
        actions = self._write_action(action)
        view = self._blank()
        step = Step(
            view=view,
            reward=np.zeros(self.num_envs),
            terminated=np.zeros(self.num_envs, np.bool_),
            truncated=np.zeros(self.num_envs, np.bool_),
            valid=self._active.copy(),
        )
        for c in range(len(self.copies)):
            self._step_copy(c, actions, step)
        self._count += 1
        self._publish(view)
        return step

    def _step_copy(self, c: int, actions: np.ndarray, step: Step) -> None:
        begin = c * len(self.agents)
        acting = {agent: actions[begin + a] for a, agent in enumerate(self.agents) if step.valid[begin + a]}
        try:
            moment = self.copies[c].step(acting)
        except Exception as error:
            what = f": {error}" if isinstance(error, SurefootError) else f" failed: {error!r}"
            raise EnvError(f"copy {c} of {self.name} at step {self._count + 1} since its reset{what}") from error
        for agent in acting:
            row = begin + self._numbers[agent]
            step.reward[row] = moment.reward.get(agent, 0.0)
            if agent in moment.ended:
                self._end_episode(step, row, c, agent, moment)
        if moment.over:
            moment = self._first_moment(c)
        self._fill_copy(step.view, c, moment)

    def _end_episode(self, step: Step, row: int, c: int, agent: Agent, moment: AgentMoment) -> None:
        """Record how an agent's episode ended, its last observation, and whether it reports success."""
        terminated, last = moment.ended[agent]
        step.terminated[row], step.truncated[row] = terminated, not terminated
        if last is None and not terminated:
            raise EnvError(
                f"{agent} of {self.name} was truncated without a last observation; return its observation in that step, or "
                "terminate it instead"
            )
        if step.final_obs is None:
            step.final_obs = self._empty()
        if last is not None:
            self._fill_row(step.final_obs, row, c, agent, last, moment)
        success = (moment.info.get(agent) or {}).get("is_success")
        if success is not None:
            step.stats.setdefault("success", np.full(self.num_envs, np.nan))[row] = float(success)

    def state(self) -> dict[str, Any]:
        if self._view is None or self.inexact is not None:
            return {"restart_seed": restart_seed(self._seed, self._count)}
        copies = {str(c): copy for c, copy in enumerate(self.copies)}
        return {
            "seed": self._seed,
            "steps": self._count,
            "episodes": self._episodes.copy(),
            "there": self._active.copy(),
            "view": view_to_state(self._view),
            "envs": {c: pack(_state_layer(copy.env).get_state()) for c, copy in copies.items()},
            "copies": {c: copy.state() for c, copy in copies.items()},
            "others": {
                c: rng_to_json(copy.others.rng if isinstance(copy.others, RandomOthers) else None)
                for c, copy in copies.items()
            },
        }

    def set_state(self, state: dict[str, Any]) -> View:
        if "restart_seed" in state:
            return self.reset(int(state["restart_seed"]))
        if len(state["copies"]) != len(self.copies):
            raise CheckpointIncompatible(
                f"the state is of {len(state['copies'])} copies of {self.name}, but this world has {len(self.copies)}"
            )
        self._seed, self._count = int(state["seed"]), int(state["steps"])
        self._episodes, self._active = np.array(state["episodes"]), np.array(state["there"], np.bool_)
        for c, copy in enumerate(self.copies):
            copy.env.reset(seed=0)  # wrappers refuse calls before a reset
            _state_layer(copy.env).set_state(unpack(state["envs"][str(c)]))
            copy.set_state(state["copies"][str(c)])
            if isinstance(copy.others, RandomOthers):
                copy.others.rng = rng_from_json(state["others"][str(c)])
        self._view = view_from_state(state["view"])
        self._masked = self._view.action_mask is not None
        return self._view

    def render(self) -> np.ndarray | None:
        env = self.copies[0].env
        if getattr(env, "render_mode", None) != "rgb_array" or self._view is None:
            return None
        return np.asarray(env.render())

    def close(self) -> None:
        for copy in self.copies:
            copy.env.close()

    def _first_moment(self, c: int) -> AgentMoment:
        """Start copy c's next episode, always with a seed: without one, many envs seed themselves from the clock."""
        for _ in range(MAX_EMPTY_EPISODES):
            seed = np.random.SeedSequence([self._seed, c, int(self._episodes[c])]).generate_state(1)[0]
            self._episodes[c] += 1
            try:
                moment = self.copies[c].reset(int(seed) >> 1)
            except SurefootError:
                raise
            except Exception as error:
                raise EnvError(f"copy {c} of {self.name} could not be reset: {error!r}") from error
            if not moment.over:
                return moment
        raise EnvError(f"copy {c} of {self.name} was over {MAX_EMPTY_EPISODES} times before any agent acted")

    def _empty(self) -> Arrays:
        return {name: np.zeros((self.num_envs, *box.shape), box.dtype) for name, box in self.observation.items()}

    def _blank(self) -> View:
        mask = np.ones((self.num_envs, self._choices), np.bool_) if self._masked else None
        return View(obs=self._empty(), action_mask=mask)

    def _fill_copy(self, view: View, c: int, moment: AgentMoment) -> None:
        """Fill the rows of copy c's active agents."""
        begin = c * len(self.agents)
        self._active[begin : begin + len(self.agents)] = False
        for agent, obs in moment.obs.items():
            row = begin + self._numbers[agent]
            self._active[row] = True
            self._fill_row(view.obs, row, c, agent, obs, moment)
            if view.action_mask is not None:
                view.action_mask[row] = self._mask_row(row, agent, obs, moment)

    def _fill_row(self, out: Arrays, row: int, c: int, agent: Agent, obs: Any, moment: AgentMoment) -> None:
        self._reader.write(out, row, obs)
        if self._critic_view is not None:
            if moment.everything is None:
                moment.everything = self._critic_view.read(self.copies[c].env, moment)
            out[STATE][row] = moment.everything
        if self.options.agent_id:
            out[AGENT_ID][row, self._numbers[agent]] = 1.0

    def _mask_row(self, row: int, agent: Agent, obs: Any, moment: AgentMoment) -> np.ndarray:
        if moment.turn is not None and agent != moment.turn:
            return self._still
        info = moment.info.get(agent) or {}
        if self._reader.masked or MASK in info:
            value = obs[MASK] if self._reader.masked else info[MASK]
            return read_mask(value, self._choices, f"stream {row} ({agent}) of {self.name}")
        if self._waits:
            return np.ones(self._choices, np.bool_)
        raise missing_mask(f"{agent} of {self.name}")

    def _publish(self, view: View) -> View:
        """Check the masks, and remember and return the view."""
        if view.action_mask is not None:
            refuse_empty(view.action_mask, self.name)
        self._view = view
        return view


@dataclass(frozen=True, slots=True)
class _CriticView:
    """What a central critic observes of a copy: the env's state (`reader` is None), or all observations."""

    box: Box
    reader: ObservationReader | None
    agents: Sequence[Agent]

    def read(self, env: Any, moment: AgentMoment) -> np.ndarray:
        if self.reader is None:
            return np.asarray(env.state(), self.box.dtype)
        out = self.reader.empty(len(self.agents))
        for part in out.values():
            part[:] = 0
        last = {agent: obs for agent, (_, obs) in moment.ended.items() if obs is not None}
        for a, agent in enumerate(self.agents):
            obs = moment.obs.get(agent, last.get(agent))
            if obs is not None:
                self.reader.write(out, a, obs)
        return np.concatenate([part.reshape(len(self.agents), -1) for part in out.values()], axis=1).ravel()


def _critic_view(env: Any, reader: ObservationReader, name: str) -> _CriticView:
    agents = list(env.possible_agents)
    try:
        # PettingZoo's base class has `state`, so only a call shows whether an env implements it.
        env.reset(seed=0)
        shape = np.shape(env.state())
    except (NotImplementedError, AttributeError):
        size = sum(box.size for box in reader.space.values())
        return _CriticView(Box((len(agents) * size,)), reader, agents)
    except Exception as error:
        raise EnvError(f"state() of {name} failed: {error!r}; fix it, or leave central=False") from error
    return _CriticView(Box(shape or (1,)), None, agents)


def _chosen_agents(env: Any, agents: Sequence[Any] | None, name: str) -> tuple[Agent, ...]:
    known = list(env.possible_agents)
    chosen = known if agents is None else list(agents)
    missing = [agent for agent in chosen if agent not in known]
    if missing:
        raise ConfigError(f"{name} has no agent {missing[0]!r}; it has {', '.join(map(str, known))}")
    if not chosen or len(set(chosen)) != len(chosen):
        raise ConfigError(f"agents is {chosen!r}; name at least one of {', '.join(map(str, known))}, each once")
    return tuple(chosen)


def _common_spaces(env: Any, agents: Sequence[Agent], name: str) -> tuple[gym.Space[Any], gym.Space[Any]]:
    first = agents[0]
    common = env.observation_space(first), env.action_space(first)
    for agent in agents[1:]:
        if (env.observation_space(agent), env.action_space(agent)) != common:
            raise SpaceError(
                f"{first} of {name} has the spaces {common[0]} and {common[1]}, {agent} has {env.observation_space(agent)} "
                f"and {env.action_space(agent)}; agents of one policy need equal spaces: pad them, or train groups apart "
                f"with agents=[{first!r}, …]"
            )
    return common


def _as_parallel(env: Any) -> Any:
    """Return a ParallelEnv for an AECEnv that is parallelizable, and any other env unchanged."""
    if not isinstance(env, TurnEnv) or not (getattr(env, "metadata", None) or {}).get("is_parallelizable", False):
        return env
    try:
        from pettingzoo.utils.conversions import aec_to_parallel
    except ImportError:
        return env
    return aec_to_parallel(env)  # pyright: ignore[reportArgumentType]  # it has the methods


def _state_layer(env: Any) -> Any:
    """Return the layer of an env that has get_state() and set_state(state); the base if none has."""
    while not _has_state(env):
        inside = vars(env).get("env")
        if inside is None or type(env).__name__ not in _STATELESS:
            return env
        env = inside
    return env


def _has_state(env: Any) -> bool:
    # Looked up in the class: PettingZoo's wrappers forward every attribute to the env they wrap.
    return hasattr(type(env), "get_state") and hasattr(type(env), "set_state")


def _title(env: Any) -> str:
    return str((getattr(env, "metadata", None) or {}).get("name") or type(env).__name__)
