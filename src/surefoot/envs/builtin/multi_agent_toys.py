"""Multi-agent toys with known answers: a shared noisy reward that only a central critic can explain, and a relay."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from gymnasium import spaces

from surefoot.data.spaces import ActionSpace, Box, Discrete, ObservationSpace
from surefoot.envs.api import Arrays, Step, View, World
from surefoot.envs.builtin.streams import Actions
from surefoot.envs.gym.snapshot import rng_from_json, rng_to_json
from surefoot.errors import ConfigError, ShapeError


class SharedReward(World):
    """Teams of streams that play one step: each stream sees its cue and should answer with it.

    All streams of a team get the same reward: the share of right answers plus Gaussian noise that none of them observes
    or influences, with standard deviation `noise`. The mean reward of perfect play is 1, of random play 1/cues. A critic that
    sees only the cue cannot separate noise from skill; one that sees "state" (all cues and all noise terms) can: given
    it, the value of perfect play is exactly 1 + noise. If the number of streams is no multiple of `team`, the last team is
    smaller. Single streams cannot be reset.
    """

    def __init__(
        self, name: str, num_envs: int, *, central: bool = False, team: int = 4, cues: int = 4, noise: float = 3.0
    ) -> None:
        if num_envs < 1 or team < 1 or cues < 2 or noise < 0:
            raise ConfigError(
                f"num_envs is {num_envs}, team {team}, cues {cues} and noise {noise}; they must be at least 1, 1, 2 and 0"
            )
        self.name, self.num_envs, self.central = name, num_envs, central
        self.team, self.cues, self.noise = team, cues, noise
        self.observation: ObservationSpace = {"obs": Box((cues,), 0.0, 1.0)}
        if central:
            self.observation["state"] = Box((team * (cues + 1),))
        self.action: ActionSpace = Discrete(cues)
        self._actions = Actions(name, self.action, num_envs)
        streams = np.arange(num_envs)
        self._team, self._member = streams // team, streams % team
        self._sizes = np.bincount(self._team)
        self.reset(0)

    def reset(self, seed: int) -> View:
        self._rng = np.random.default_rng(seed)
        self._draw()
        return self._view()

    def step(self, action: np.ndarray) -> Step:
        right = (self._actions.checked(action) == self._cue).astype(np.float64)
        common = np.bincount(self._team, right) / self._sizes + np.bincount(self._team, self._noise)
        final_obs = self._view().obs
        self._draw()
        n = self.num_envs
        return Step(
            view=self._view(),
            reward=common[self._team],
            terminated=np.ones(n, np.bool_),
            truncated=np.zeros(n, np.bool_),
            valid=np.ones(n, np.bool_),
            final_obs=final_obs,
            stats={"success": right},
        )

    def state(self) -> dict[str, Any]:
        # "lucks" is the noise's name in checkpoints of earlier releases.
        return {"cue": self._cue.copy(), "lucks": self._noise.copy(), "rng": rng_to_json(self._rng)}

    def set_state(self, state: dict[str, Any]) -> View:
        cue, noise = np.array(state["cue"], np.int64), np.array(state["lucks"], np.float64)
        if cue.shape != (self.num_envs,) or noise.shape != (self.num_envs,):
            raise ShapeError(
                f"state holds {list(cue.shape)} cues; {self.name} with {self.num_envs} streams needs as many"
            )
        self._cue, self._noise, self._rng = cue, noise, rng_from_json(state["rng"])
        return self._view()

    def _draw(self) -> None:
        """Draw the next cues and noise."""
        self._cue = self._rng.integers(self.cues, size=self.num_envs)
        share = self.noise / np.sqrt(self._sizes)[self._team]
        # Rounded to float32, so that a central critic observes exactly the noise that is in the reward.
        self._noise = (share * self._rng.standard_normal(self.num_envs)).astype(np.float32).astype(np.float64)

    def _view(self) -> View:
        cue = (self._cue[:, None] == np.arange(self.cues)).astype(np.float32)
        obs: Arrays = {"obs": cue}
        if self.central:
            table = np.zeros((len(self._sizes), self.team, self.cues + 1), np.float32)
            table[self._team, self._member, : self.cues] = cue
            table[self._team, self._member, self.cues] = self._noise
            obs["state"] = table.reshape(len(self._sizes), -1)[self._team]
        return View(obs=obs)


class Relay:
    """A parallel env with PettingZoo's interface, in which runners come and go.

    Every `stride` steps the next runner joins; it runs for `life` steps, is then terminated, and may join again in a
    later lap. At step `limit`, if there is one, all runners are truncated. A runner sees its age and a cue, and earns 1
    for naming the cue: after t steps the value of perfect play is (1 - γ^(life - t)) / (1 - γ).

    Args:
        runners: Number of possible agents.
        life: Steps until a runner is terminated; below runners · stride, when its next lap starts.
        stride: Steps between two runners; at most `life`, so that there is always a runner.
        laps: How often each runner joins.
        limit: Step at which the episode is truncated; None for no limit.
        cues: Number of cues and of actions.
    """

    metadata: dict[str, Any] = {"name": "relay", "render_modes": []}  # noqa: RUF012  PettingZoo's own annotation
    render_mode: str | None = None

    def __init__(
        self, runners: int = 3, life: int = 5, stride: int = 2, laps: int = 2, limit: int | None = None, cues: int = 2
    ) -> None:
        if not 1 <= stride <= life < runners * stride:
            raise ConfigError(
                f"life is {life} and stride {stride}; stride must be at most life, so that there is always a runner, and "
                f"life below runners · stride = {runners * stride}, when a runner's next lap begins"
            )
        self.possible_agents = [f"runner_{i}" for i in range(runners)]
        self.agents: list[str] = []
        self.life, self.stride, self.laps, self.limit, self.cues = life, stride, laps, limit, cues
        self._observation_space = spaces.Box(0.0, 1.0, (1 + cues,), np.float32)
        self._action_space = spaces.Discrete(cues)

    def value(self, gamma: float, age: int = 0) -> float:
        """Return the value of perfect play for a runner of this age that is not truncated."""
        return (1.0 - gamma ** (self.life - age)) / (1.0 - gamma)

    def observation_space(self, agent: str, /) -> spaces.Box:
        return self._observation_space

    def action_space(self, agent: str, /) -> spaces.Discrete:
        return self._action_space

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, dict[str, Any]]]:
        if seed is not None or not hasattr(self, "_rng"):
            self._rng = np.random.default_rng(seed)
        self._time, self._age, self._cue = 0, dict[str, int](), dict[str, int]()
        self._join()
        return {agent: self._observe(agent) for agent in self.agents}, {agent: {} for agent in self.agents}

    def step(self, actions: dict[str, Any], /) -> tuple[dict[str, Any], ...]:
        """Take the answers of all runners; the observation of a runner that ends is its last."""
        ran = list(self.agents)
        reward = {agent: float(actions[agent] == self._cue[agent]) for agent in ran}
        self._time += 1
        for agent in ran:
            self._age[agent] += 1
            self._cue[agent] = int(self._rng.integers(self.cues))
        late = self.limit is not None and self._time >= self.limit
        terminated = {agent: self._age[agent] >= self.life for agent in ran}
        truncated = {agent: late and not terminated[agent] for agent in ran}
        last = {agent: self._observe(agent) for agent in ran}
        for agent in ran:
            if terminated[agent] or truncated[agent]:
                del self._age[agent], self._cue[agent]
        self._join(late=late)
        obs = last | {agent: self._observe(agent) for agent in self.agents}
        return obs, reward, terminated, truncated, {agent: {} for agent in {*ran, *self.agents}}

    def get_state(self) -> dict[str, Any]:
        """Return the complete state as arrays and JSON values."""
        return {"time": self._time, "age": dict(self._age), "cue": dict(self._cue), "rng": rng_to_json(self._rng)}

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""
        self._time, self._age, self._cue = state["time"], dict(state["age"]), dict(state["cue"])
        self._rng = rng_from_json(state["rng"])
        self._join(late=True)

    def close(self) -> None:
        """Do nothing: there are no resources."""

    def _join(self, *, late: bool = False) -> None:
        """Let the runner join that is due, unless it is too late, and update `agents`."""
        turn, early = divmod(self._time, self.stride)
        if not late and early == 0 and turn < self.laps * len(self.possible_agents):
            agent = self.possible_agents[turn % len(self.possible_agents)]
            self._age[agent], self._cue[agent] = 0, int(self._rng.integers(self.cues))
        self.agents = [agent for agent in self.possible_agents if agent in self._age]

    def _observe(self, agent: str) -> np.ndarray:
        obs = np.zeros(1 + self.cues, np.float32)
        obs[0], obs[1 + self._cue[agent]] = self._age[agent] / self.life, 1.0
        return obs


SHARED_REWARD: dict[str, Callable[[int], World]] = {
    "surefoot/Choir-v0": partial(SharedReward, "surefoot/Choir-v0"),
    "surefoot/ChoirCentral-v0": partial(SharedReward, "surefoot/ChoirCentral-v0", central=True),
}
"""Constructors by id that take the number of streams."""
