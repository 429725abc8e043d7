"""Envs with many agents as one world: M copies with A agents each are M·A streams of one policy.

An agent that is not there (dead, or not yet come) has rows that are not `valid`, all zeros; its first row after those
begins an episode. Nothing that learns needs to know of agents.
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
    observation_reader,
    read_mask,
    refuse_empty,
)
from surefoot.envs.gym.vector_env import build_env, restart_seed, view_from_state, view_to_state
from surefoot.errors import CheckpointIncompatible, ConfigError, EnvError, ShapeError, SpaceError, SurefootError

STATE, WHO = "state", "agent"
"""Observation parts that `central` and `agent_id` add."""
STILLBORN = 100
"""Episodes in a row that may be over before any agent acted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    """Who of an env's agents is a stream, and what a stream sees besides its own observation."""

    agents: Sequence[Any] | None = None
    """Those that are streams; None for all. The rest is played by `others`."""
    others: Others | None = None
    """(agent, observation, info) → action; None plays any legal action. It must not have a memory of its own."""
    central: bool = False
    """Add the part "state" for a critic that sees everything: env.state() if there is one, else all observations."""
    agent_id: bool = False
    """Add the part "agent": which of the agents it is, one-hot."""


def agents_world(env: Any, num_envs: int = 1, *, name: str | None = None, **options: Any) -> AgentsWorld:
    """`num_envs` copies of a PettingZoo ParallelEnv or AECEnv, or of what a function builds; see `AgentOptions`.

    A ready env is one copy. An AECEnv that says it is parallelizable is stepped as a parallel one; in any other,
    agents take turns, and one that waits has a row with a single action allowed, which changes nothing.
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
        raise EnvError(f"{type(env).__name__} has no agents; a PettingZoo ParallelEnv, AECEnv or a function works")
    envs = [build_env(env) for _ in range(num_envs)]
    for built in envs:
        if not is_many_agents(built):
            kind = type(built).__name__
            raise EnvError(f"the function built a {kind}, which has no agents; a ParallelEnv or AECEnv works")
    return AgentsWorld(envs, AgentOptions(**options), name)


class AgentsWorld(World):
    """Copies of one env, stepped one after the other; stream c·A + a is agent a of copy c.

    Single streams cannot be reset: an agent begins again with the others of its copy.
    """

    backend = "pettingzoo"

    def __init__(self, envs: Sequence[Any], options: AgentOptions | None = None, name: str | None = None) -> None:
        self.options = options or AgentOptions()
        envs = [_as_parallel(env) for env in envs]
        first = envs[0]
        self.name = name or _title(first)
        self.agents = _chosen(first, self.options.agents, self.name)
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
                f"the agents of {self.name} take turns and act in {self.gym_spaces[1]}, so one that waits cannot be held "
                f"still; choices work, and so does one learner a copy: agents=[{next(iter(self.agents))!r}]"
            )
        self._state_of = _state_reader(first, self._reader, self.name) if self.options.central else None
        self.observation: ObservationSpace = _with_extras(
            self._reader, self._state_of, self.agents, self.options, self.name
        )
        # An agent that waits may take the first option of each choice only.
        self._still = np.concatenate([np.ones(0, np.bool_), *(np.arange(n) == 0 for n in choice_sizes(self.action))])
        self._write_action = action_writer(self.gym_spaces[1])
        self._places = {agent: a for a, agent in enumerate(self.agents)}
        if silent := [layer for env in envs if not _speaks(layer := _speaker(env))]:
            self.inexact = (
                f"{self.name}: {type(silent[0]).__name__} does not export its state; give it get_state() and "
                "set_state(state) and a resumed run is exact"
            )
        self._masked = self._waits or self._reader.masked
        self._view: View | None = None
        self._there = np.zeros(self.num_envs, np.bool_)
        self._episodes = np.zeros(len(envs), np.int64)
        self._seed = self._count = 0

    def reset(self, seed: int) -> View:
        self._seed, self._count = seed, 0
        self._episodes[:] = 0
        for c, copy in enumerate(self.copies):
            if isinstance(copy.others, RandomOthers):
                copy.others.rng = np.random.default_rng([seed, c])
        moments = [self._first_moment(c) for c in range(len(self.copies))]
        self._masked = (
            self._waits
            or self._reader.masked
            or (
                self._choices > 0 and any(MASK in (moment.info.get(a) or {}) for moment in moments for a in moment.seen)
            )
        )
        view = self._blank()
        for c, moment in enumerate(moments):
            self._show(view, c, moment)
        return self._checked(view)

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
            valid=self._there.copy(),
        )
        for c in range(len(self.copies)):
            self._step_copy(c, actions, step)
        self._count += 1
        self._checked(view)
        return step

    def _step_copy(self, c: int, actions: np.ndarray, step: Step) -> None:
        copy, begin = self.copies[c], c * len(self.agents)
        acting = {agent: actions[begin + a] for a, agent in enumerate(self.agents) if step.valid[begin + a]}
        try:
            moment = copy.step(acting)
        except Exception as error:
            what = f": {error}" if isinstance(error, SurefootError) else f" failed: {error!r}"
            raise EnvError(f"copy {c} of {self.name} at step {self._count + 1} since its reset{what}") from error
        for agent in acting:
            row = begin + self._places[agent]
            step.reward[row] = moment.reward.get(agent, 0.0)
            if agent in moment.ended:
                terminated, last = moment.ended[agent]
                step.terminated[row], step.truncated[row] = terminated, not terminated
                self._finish(step, row, c, agent, last, moment)
        if moment.over:
            moment = self._first_moment(c)
        self._show(step.view, c, moment)

    def _finish(self, step: Step, row: int, c: int, agent: Agent, last: Any, moment: AgentMoment) -> None:
        """Record an agent's last observation, and whether it reports success."""
        if last is None and step.truncated[row]:
            raise EnvError(
                f"{agent} of {self.name} was truncated without a last observation; put it into the observations of that "
                "step, or end it with a termination"
            )
        if step.final_obs is None:
            step.final_obs = self._empty()
        if last is not None:
            self._fill(step.final_obs, row, c, agent, last, moment)
        said = (moment.info.get(agent) or {}).get("is_success")
        if said is not None:
            step.stats.setdefault("success", np.full(self.num_envs, np.nan))[row] = float(said)

    def state(self) -> dict[str, Any]:
        if self._view is None or self.inexact is not None:
            return {"restart_seed": restart_seed(self._seed, self._count)}
        return {
            "seed": self._seed,
            "steps": self._count,
            "episodes": self._episodes.copy(),
            "there": self._there.copy(),
            "view": view_to_state(self._view),
            "envs": {str(c): pack(_speaker(copy.env).get_state()) for c, copy in enumerate(self.copies)},
            "copies": {str(c): copy.state() for c, copy in enumerate(self.copies)},
            "others": {
                str(c): rng_to_json(copy.others.rng if isinstance(copy.others, RandomOthers) else None)
                for c, copy in enumerate(self.copies)
            },
        }

    def set_state(self, state: dict[str, Any]) -> View:
        if "restart_seed" in state:
            return self.reset(int(state["restart_seed"]))
        if len(state["copies"]) != len(self.copies):
            raise CheckpointIncompatible(
                f"the state was kept for {len(state['copies'])} copies of {self.name}, but there are {len(self.copies)}"
            )
        self._seed, self._count = int(state["seed"]), int(state["steps"])
        self._episodes, self._there = np.array(state["episodes"]), np.array(state["there"], np.bool_)
        for c, copy in enumerate(self.copies):
            copy.env.reset(seed=0)  # wrappers want to have seen one
            _speaker(copy.env).set_state(unpack(state["envs"][str(c)]))
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
        """Begin copy c's next episode. Its seed is ours: many envs draw a new one from the clock if they get none."""
        for _ in range(STILLBORN):
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
        raise EnvError(f"copy {c} of {self.name} was over {STILLBORN} times before any agent acted")

    def _empty(self) -> Arrays:
        return {name: np.zeros((self.num_envs, *box.shape), box.dtype) for name, box in self.observation.items()}

    def _blank(self) -> View:
        mask = np.ones((self.num_envs, self._choices), np.bool_) if self._masked else None
        return View(obs=self._empty(), action_mask=mask)

    def _show(self, view: View, c: int, moment: AgentMoment) -> None:
        """Fill copy c's rows with those who are there."""
        begin = c * len(self.agents)
        self._there[begin : begin + len(self.agents)] = False
        for agent, obs in moment.seen.items():
            row = begin + self._places[agent]
            self._there[row] = True
            self._fill(view.obs, row, c, agent, obs, moment)
            if view.action_mask is not None:
                view.action_mask[row] = self._mask_row(row, agent, obs, moment)

    def _fill(self, out: Arrays, row: int, c: int, agent: Agent, obs: Any, moment: AgentMoment) -> None:
        self._reader.write(out, row, obs)
        if self._state_of is not None:
            if moment.everything is None:
                moment.everything = self._state_of.read(self.copies[c].env, moment)
            out[STATE][row] = moment.everything
        if self.options.agent_id:
            out[WHO][row, self._places[agent]] = 1.0

    def _mask_row(self, row: int, agent: Agent, obs: Any, moment: AgentMoment) -> np.ndarray:
        if moment.turn is not None and agent != moment.turn:
            return self._still
        info = moment.info.get(agent) or {}
        if self._reader.masked:
            value = obs[MASK]
        elif MASK in info:
            value = info[MASK]
        elif self._waits:
            return np.ones(self._choices, np.bool_)
        else:
            raise EnvError(
                f"{agent} of {self.name} gives no {MASK} now, though one was given at the reset; give it always"
            )
        return read_mask(value, self._choices, f"stream {row} ({agent}) of {self.name}")

    def _checked(self, view: View) -> View:
        if view.action_mask is not None:
            refuse_empty(view.action_mask, self.name)
        self._view = view
        return view


class _State:
    """What a central critic sees of a copy: the env's own state, or everybody's observations side by side."""

    def __init__(self, box: Box, reader: ObservationReader | None, agents: Sequence[Agent]) -> None:
        self.box, self.reader, self.agents = box, reader, agents

    def read(self, env: Any, moment: AgentMoment) -> np.ndarray:
        if self.reader is None:
            return np.asarray(env.state(), self.box.dtype)
        out = self.reader.empty(len(self.agents))
        for part in out.values():
            part[:] = 0
        last = {agent: obs for agent, (_, obs) in moment.ended.items() if obs is not None}
        for a, agent in enumerate(self.agents):
            obs = moment.seen.get(agent, last.get(agent))
            if obs is not None:
                self.reader.write(out, a, obs)
        return np.concatenate([part.reshape(len(self.agents), -1) for part in out.values()], axis=1).ravel()


def _state_reader(env: Any, reader: ObservationReader, name: str) -> _State:
    """Whether an env has a state of its own is only known when it is asked."""
    agents = list(env.possible_agents)
    try:
        env.reset(seed=0)
        shape = np.shape(env.state())
    except (NotImplementedError, AttributeError):
        each = sum(box.size for box in reader.space.values())
        return _State(Box((len(agents) * each,)), reader, agents)
    except Exception as error:
        raise EnvError(f"{name} could not say its state: {error!r}; leave central=False, or mend state()") from error
    return _State(Box(shape or (1,)), None, agents)


def _with_extras(
    reader: ObservationReader, state: _State | None, agents: Sequence[Agent], options: AgentOptions, name: str
) -> ObservationSpace:
    extras: ObservationSpace = {}
    if state is not None:
        extras[STATE] = state.box
    if options.agent_id:
        extras[WHO] = Box((len(agents),), 0.0, 1.0)
    taken = [part for part in extras if part in reader.space]
    if taken:
        raise SpaceError(f"the observation of {name} has a part {taken[0]!r} of its own; rename it there")
    return {**reader.space, **extras}


def _chosen(env: Any, agents: Sequence[Any] | None, name: str) -> tuple[Agent, ...]:
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
    sees, acts = env.observation_space(first), env.action_space(first)
    for agent in agents[1:]:
        if env.observation_space(agent) != sees or env.action_space(agent) != acts:
            raise SpaceError(
                f"{first} of {name} sees {sees} and acts in {acts}, {agent} sees {env.observation_space(agent)} and acts "
                f"in {env.action_space(agent)}; agents of one policy need equal spaces: pad them, or train groups apart "
                f"with agents=[{first!r}, …]"
            )
    return sees, acts


def _as_parallel(env: Any) -> Any:
    """An AECEnv in which all agents may be asked at once becomes a ParallelEnv; anything else stays as it is."""
    if not isinstance(env, TurnEnv) or not (getattr(env, "metadata", None) or {}).get("is_parallelizable", False):
        return env
    try:
        from pettingzoo.utils.conversions import aec_to_parallel
    except ImportError:
        return env
    return aec_to_parallel(env)  # pyright: ignore[reportArgumentType]  # it has the methods


_NO_MEMORY = ("OrderEnforcingWrapper", "AssertOutOfBoundsWrapper", "ClipOutOfBoundsWrapper", "CaptureStdoutWrapper")
"""PettingZoo's wrappers that remember nothing but that there was a reset."""


def _speaker(env: Any) -> Any:
    """The layer of an env that has get_state() and set_state(state); the base if none has."""
    while not _speaks(env):
        inside = vars(env).get("env")
        if inside is None or type(env).__name__ not in _NO_MEMORY:
            return env
        env = inside
    return env


def _speaks(env: Any) -> bool:
    # By the class: PettingZoo's wrappers hand on every name, and would seem to speak for what they add themselves.
    return hasattr(type(env), "get_state") and hasattr(type(env), "set_state")


def _title(env: Any) -> str:
    said = (getattr(env, "metadata", None) or {}).get("name")
    return str(said) if said else type(env).__name__
