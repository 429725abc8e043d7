"""One town as a PettingZoo ParallelEnv, for whoever trains with other tools. PettingZoo itself is not needed to use it."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from surefoot.envs.gym.snapshot import rng_from_json, rng_to_json
from surefoot.town.scenarios.scenario import Scenario, load_scenario
from surefoot.town.sim.layout import make_layout
from surefoot.town.sim.maps import MapMaker
from surefoot.town.sim.masks import action_mask
from surefoot.town.sim.observe import feature_names, features, neighbours
from surefoot.town.sim.rewards import PARTS
from surefoot.town.sim.state import Randomness, State, begin, make_randomness
from surefoot.town.sim.tick import tick, utilities_of

Seen = Any
"""[F] float32 features; with a map {"features": …, "map": …}."""


class TownEnv:
    """Agents see named features (`feature_names`), masks are in `infos[agent]["action_mask"]`, parts of rewards too.

    Who faints or has to leave is out until the next reset: PettingZoo knows no second life. `TownWorld` does.
    """

    metadata: dict[str, Any] = {"name": "surefoot_town_v0", "render_modes": ["rgb_array"], "is_parallelizable": True}  # noqa: RUF012  PettingZoo's own annotation
    render_mode: str | None = "rgb_array"

    def __init__(self, scenario: Scenario | str = "queue_conflict", *, observations: str | None = None) -> None:
        self.scenario = load_scenario(scenario) if isinstance(scenario, str) else scenario
        self.layout = make_layout(self.scenario)
        self.possible_agents = [resident.id for resident in self.scenario.agents]
        self.agents: list[str] = []
        self.feature_names = feature_names(self.layout)
        variant = observations or self.scenario.observations
        self._maps = None if variant == "features" else MapMaker(self.layout, variant)
        self._acts = {agent: spaces.Discrete(self.layout.actions) for agent in self.possible_agents}
        self._sees = {agent: self._space() for agent in self.possible_agents}
        self._random: Randomness | None = None

    def observation_space(self, agent: str, /) -> spaces.Space[Any]:
        """What one agent sees."""
        return self._sees[agent]

    def action_space(self, agent: str, /) -> spaces.Discrete:
        """What one agent may do; `scenario.actions` has the names."""
        return self._acts[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Seen], dict[str, dict[str, Any]]]:
        """A new day. Without a seed the randomness goes on."""
        if seed is not None or self._random is None:
            self._random = make_randomness(self.scenario.seed if seed is None else seed)
        self._state = begin(self.layout, 1, self._random)
        self.agents = list(self.possible_agents)
        return self._look(self.agents)

    def step(self, actions: dict[str, Any], /) -> tuple[dict[str, Any], ...]:
        """All agents act at once; what is not possible does nothing."""
        assert self._random is not None, "reset comes before step"
        here = list(self.agents)
        choice = np.zeros((1, len(self.possible_agents)), np.int64)
        for agent in here:
            choice[0, self.possible_agents.index(agent)] = int(actions[agent])
        self._state, outcome = tick(self.layout, self._state, choice, self._random)
        late = bool(self._state.tick[0] >= self.scenario.ticks)
        number = {agent: self.possible_agents.index(agent) for agent in here}
        reward = {agent: float(outcome.reward[0, i]) for agent, i in number.items()}
        terminated = {agent: bool(outcome.terminated[0, i]) for agent, i in number.items()}
        truncated = {agent: late and not terminated[agent] for agent in here}
        obs, infos = self._look(here)
        for agent, i in number.items():
            infos[agent]["reward_parts"] = dict(zip(PARTS, outcome.parts[0, i].tolist(), strict=True))
        self.agents = [agent for agent in here if not (terminated[agent] or truncated[agent])]
        return obs, reward, terminated, truncated, infos

    def state(self) -> np.ndarray:
        """What all agents see, side by side: for a central critic."""
        obs, _ = self._look(self.possible_agents)
        parts = [obs[agent] if self._maps is None else obs[agent]["features"] for agent in self.possible_agents]
        return np.concatenate(parts)

    def get_state(self) -> dict[str, Any]:
        """Everything, as arrays and JSON values."""
        assert self._random is not None, "reset comes first"
        return {
            "arrays": self._state.to_arrays(),
            "agents": list(self.agents),
            "world": rng_to_json(self._random.world),
            "events": rng_to_json(self._random.events),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from where `state` was taken."""
        self._state = State.from_arrays(state["arrays"])
        self._random = Randomness(rng_from_json(state["world"]), rng_from_json(state["events"]))
        self.agents = list(state["agents"])

    def render(self) -> np.ndarray:
        """A picture of the town, [H, W, 3] uint8."""
        from surefoot.town.view.picture import picture

        return picture(self.layout, self._state, 0)

    def close(self) -> None:
        """Nothing is held."""

    def _space(self) -> spaces.Space[Any]:
        wide = spaces.Box(-np.inf, np.inf, (len(self.feature_names),), np.float32)
        if self._maps is None:
            return wide
        side = self._maps.window
        sheet = spaces.Box(-np.inf, np.inf, (len(self._maps.channels), side, side), np.float32)
        return spaces.Dict({"features": wide, "map": sheet})

    def _look(self, who: list[str]) -> tuple[dict[str, Seen], dict[str, dict[str, Any]]]:
        utilities, near = utilities_of(self._state, self.layout), neighbours(self._state, self.layout)
        seen = features(self._state, self.layout, utilities, near)[0]
        mask = action_mask(self._state, self.layout, utilities, near[0], near[1])[0]
        maps = None if self._maps is None else self._maps.maps(self._state)[0]
        obs: dict[str, Seen] = {}
        infos: dict[str, dict[str, Any]] = {}
        for agent in who:
            i = self.possible_agents.index(agent)
            obs[agent] = seen[i].copy() if maps is None else {"features": seen[i].copy(), "map": maps[i].copy()}
            infos[agent] = {"action_mask": mask[i].astype(np.int8)}
        return obs, infos


def parallel_env(scenario: Scenario | str = "queue_conflict", *, observations: str | None = None) -> Any:
    """The same as an instance of PettingZoo's own class, for tools that ask for one: pip install 'surefoot[town]'."""
    try:
        from pettingzoo import ParallelEnv
    except ImportError as why:
        from surefoot.errors import ConfigError

        raise ConfigError("a PettingZoo env needs PettingZoo: pip install 'surefoot[town]'") from why
    kind = type("PettingZooTown", (TownEnv, ParallelEnv), {"__doc__": TownEnv.__doc__})
    return kind(scenario, observations=observations)
