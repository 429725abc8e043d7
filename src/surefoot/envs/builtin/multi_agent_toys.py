"""Toys with several agents and known answers: a choir whose luck only a central critic sees, a relay of short lives."""

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


class Choir(World):
    """`voices` streams sing together, one note: each sees its own cue and should answer it.

    All get the same reward: the share of right answers, plus luck that none of them sees or can change, a sum over the
    voices with deviation `luck`. The best is worth 1 on average, chance 1/cues. A critic that sees only the cue cannot
    tell luck from skill; one that sees "state" (all cues, all lucks) can: given it, the best is worth exactly 1 + luck.
    If the streams are no multiple of `voices`, the last choir is smaller. Single voices cannot be reset.
    """

    def __init__(
        self, name: str, num_envs: int, *, central: bool = False, voices: int = 4, cues: int = 4, luck: float = 3.0
    ) -> None:
        if num_envs < 1 or voices < 1 or cues < 2 or luck < 0:
            raise ConfigError(
                f"num_envs is {num_envs}, voices {voices}, cues {cues} and luck {luck}; at least 1, 1, 2 and 0 work"
            )
        self.name, self.num_envs, self.central = name, num_envs, central
        self.voices, self.cues, self.luck = voices, cues, luck
        self.observation: ObservationSpace = {"obs": Box((cues,), 0.0, 1.0)}
        if central:
            self.observation["state"] = Box((voices * (cues + 1),))
        self.action: ActionSpace = Discrete(cues)
        self._actions = Actions(name, self.action, num_envs)
        streams = np.arange(num_envs)
        self._choir, self._seat = streams // voices, streams % voices
        self._sizes = np.bincount(self._choir)
        self.reset(0)

    def reset(self, seed: int) -> View:
        self._rng = np.random.default_rng(seed)
        self._sing()
        return self._view()

    def step(self, action: np.ndarray) -> Step:
        right = (self._actions.checked(action) == self._cue).astype(np.float64)
        common = np.bincount(self._choir, right) / self._sizes + np.bincount(self._choir, self._lucks)
        final_obs = self._view().obs
        self._sing()
        n = self.num_envs
        return Step(
            view=self._view(),
            reward=common[self._choir],
            terminated=np.ones(n, np.bool_),
            truncated=np.zeros(n, np.bool_),
            valid=np.ones(n, np.bool_),
            final_obs=final_obs,
            stats={"success": right},
        )

    def state(self) -> dict[str, Any]:
        return {"cue": self._cue.copy(), "lucks": self._lucks.copy(), "rng": rng_to_json(self._rng)}

    def set_state(self, state: dict[str, Any]) -> View:
        cue, lucks = np.array(state["cue"], np.int64), np.array(state["lucks"], np.float64)
        if cue.shape != (self.num_envs,) or lucks.shape != (self.num_envs,):
            raise ShapeError(
                f"state holds {list(cue.shape)} cues; {self.name} with {self.num_envs} streams needs as many"
            )
        self._cue, self._lucks, self._rng = cue, lucks, rng_from_json(state["rng"])
        return self._view()

    def _sing(self) -> None:
        self._cue = self._rng.integers(self.cues, size=self.num_envs)
        share = self.luck / np.sqrt(self._sizes)[self._choir]
        # What float32 can hold, so that what a central critic sees is what counts.
        self._lucks = (share * self._rng.standard_normal(self.num_envs)).astype(np.float32).astype(np.float64)

    def _view(self) -> View:
        own = (self._cue[:, None] == np.arange(self.cues)).astype(np.float32)
        obs: Arrays = {"obs": own}
        if self.central:
            every = np.zeros((len(self._sizes), self.voices, self.cues + 1), np.float32)
            every[self._choir, self._seat, : self.cues] = own
            every[self._choir, self._seat, self.cues] = self._lucks
            obs["state"] = every.reshape(len(self._sizes), -1)[self._choir]
        return View(obs=obs)


class Relay:
    """A parallel env in PettingZoo's form, in which runners come and go.

    Every `stride` steps the next runner joins; it runs for `life` steps, then it is terminated, and may join again in a
    later lap. At step `limit`, if there is one, whoever runs is truncated. A runner sees its age and a cue, and earns 1
    for naming the cue: after t steps perfect play is worth (1 - γ^(life - t)) / (1 - γ).
    """

    metadata: dict[str, Any] = {"name": "relay", "render_modes": []}  # noqa: RUF012  PettingZoo's own annotation
    render_mode: str | None = None

    def __init__(
        self, runners: int = 3, life: int = 5, stride: int = 2, laps: int = 2, limit: int | None = None, cues: int = 2
    ) -> None:
        if not 1 <= stride <= life < runners * stride:
            raise ConfigError(
                f"life is {life} and stride {stride}; stride must be at most life, so that somebody runs, and life below "
                f"runners · stride = {runners * stride}, when a runner's next lap begins"
            )
        self.possible_agents = [f"runner_{i}" for i in range(runners)]
        self.agents: list[str] = []
        self.life, self.stride, self.laps, self.limit, self.cues = life, stride, laps, limit, cues
        self._sees = spaces.Box(0.0, 1.0, (1 + cues,), np.float32)
        self._acts = spaces.Discrete(cues)

    def value(self, gamma: float, age: int = 0) -> float:
        """What perfect play is worth to a runner of this age, if nothing cuts it short."""
        return (1.0 - gamma ** (self.life - age)) / (1.0 - gamma)

    def observation_space(self, agent: str, /) -> spaces.Box:
        return self._sees

    def action_space(self, agent: str, /) -> spaces.Discrete:
        return self._acts

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, dict[str, Any]]]:
        if seed is not None or not hasattr(self, "_rng"):
            self._rng = np.random.default_rng(seed)
        self._time, self._age, self._cue = 0, dict[str, int](), dict[str, int]()
        self._join()
        return self._look(), {agent: {} for agent in self.agents}

    def step(self, actions: dict[str, Any], /) -> tuple[dict[str, Any], ...]:
        """Everybody who runs names a cue; observations of those who end are their last."""
        ran = list(self.agents)
        reward = {agent: float(actions[agent] == self._cue[agent]) for agent in ran}
        self._time += 1
        for agent in ran:
            self._age[agent] += 1
            self._cue[agent] = int(self._rng.integers(self.cues))
        late = self.limit is not None and self._time >= self.limit
        terminated = {agent: self._age[agent] >= self.life for agent in ran}
        truncated = {agent: late and not terminated[agent] for agent in ran}
        last = {agent: self._see(agent) for agent in ran}
        for agent in ran:
            if terminated[agent] or truncated[agent]:
                del self._age[agent], self._cue[agent]
        self._join(late=late)
        return last | self._look(), reward, terminated, truncated, {agent: {} for agent in {*ran, *self.agents}}

    def get_state(self) -> dict[str, Any]:
        """Everything, as arrays and JSON values."""
        return {"time": self._time, "age": dict(self._age), "cue": dict(self._cue), "rng": rng_to_json(self._rng)}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from where `state` was taken."""
        self._time, self._age, self._cue = state["time"], dict(state["age"]), dict(state["cue"])
        self._rng = rng_from_json(state["rng"])
        self._join(late=True)

    def close(self) -> None:
        """Nothing is held."""

    def _join(self, *, late: bool = False) -> None:
        """List the runners, and let in the one that is due unless it is too late."""
        turn, early = divmod(self._time, self.stride)
        if not late and early == 0 and turn < self.laps * len(self.possible_agents):
            agent = self.possible_agents[turn % len(self.possible_agents)]
            self._age[agent], self._cue[agent] = 0, int(self._rng.integers(self.cues))
        self.agents = [agent for agent in self.possible_agents if agent in self._age]

    def _look(self) -> dict[str, np.ndarray]:
        return {agent: self._see(agent) for agent in self.agents}

    def _see(self, agent: str) -> np.ndarray:
        seen = np.zeros(1 + self.cues, np.float32)
        seen[0], seen[1 + self._cue[agent]] = self._age[agent] / self.life, 1.0
        return seen


CHOIRS: dict[str, Callable[[int], World]] = {
    "surefoot/Choir-v0": partial(Choir, "surefoot/Choir-v0"),
    "surefoot/ChoirCentral-v0": partial(Choir, "surefoot/ChoirCentral-v0", central=True),
}
"""Constructors that take the number of streams, by id."""
