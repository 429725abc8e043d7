"""`TownEnv`: one town with PettingZoo's ParallelEnv interface, for other libraries. PettingZoo need not be installed."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from surefoot.envs.gym.snapshot import rng_from_json, rng_to_json
from surefoot.errors import ConfigError
from surefoot.town.scenarios.scenario import Scenario, load_scenario
from surefoot.town.sim.engine import make_engine
from surefoot.town.sim.events import Happenings
from surefoot.town.sim.layout import make_layout
from surefoot.town.sim.maps import MapMaker
from surefoot.town.sim.measure import measures
from surefoot.town.sim.observe import feature_names
from surefoot.town.sim.rewards import PARTS
from surefoot.town.sim.state import Randomness, State, begin, make_randomness

AgentObs = Any
"""[F] float32 features; with a map {"features": …, "map": …}."""


class TownEnv:
    """One town as a parallel env.

    Observations are the features `feature_names`. `infos[agent]` has the "action_mask", and after a step the
    "reward_parts" and the "events" of the tick that the agent took part in or that affect the whole town: a list of
    {"kind", "actor", "other", "object", "value"} with names, None for nobody and nothing. With the last step of an
    agent it also has the "measures" of the town so far. An agent that faints or is evicted is out until the next
    reset, because PettingZoo agents cannot come back; in `TownWorld` they do.

    Args:
        scenario: The name of a shipped scenario, a YAML file, or a `Scenario`.
        observations: "features", "hybrid", "full" or "compact"; None for the scenario's.
    """

    metadata: dict[str, Any] = {"name": "surefoot_town_v0", "render_modes": ["rgb_array"], "is_parallelizable": True}  # noqa: RUF012  PettingZoo's own annotation
    render_mode: str | None = "rgb_array"

    def __init__(self, scenario: Scenario | str = "queue_conflict", *, observations: str | None = None) -> None:
        self.scenario = load_scenario(scenario) if isinstance(scenario, str) else scenario
        self.layout = make_layout(self.scenario)
        self.engine = make_engine(self.layout)
        self.possible_agents = [resident.id for resident in self.scenario.agents]
        self.agents: list[str] = []
        self.feature_names = feature_names(self.layout)
        variant = observations or self.scenario.observations
        self._maps = None if variant == "features" else MapMaker(self.layout, variant)
        self._acts = {agent: spaces.Discrete(self.layout.actions) for agent in self.possible_agents}
        self._sees = {agent: self._space() for agent in self.possible_agents}
        self._random: Randomness | None = None

    def observation_space(self, agent: str, /) -> spaces.Space[Any]:
        return self._sees[agent]

    def action_space(self, agent: str, /) -> spaces.Discrete:
        """Return an agent's action space; `scenario.actions` has the names."""
        return self._acts[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, AgentObs], dict[str, dict[str, Any]]]:
        """Start an episode; without a seed the generators continue."""
        if seed is not None or self._random is None:
            self._random = make_randomness(self.scenario.seed if seed is None else seed)
        self._state = begin(self.layout, 1, self._random)
        self.agents = list(self.possible_agents)
        return self._observe(self.agents)

    def step(self, actions: dict[str, Any], /) -> tuple[dict[str, Any], ...]:
        """Take the actions of all agents; an action that is not allowed does nothing."""
        assert self._random is not None, "call reset before step"
        acting = list(self.agents)
        choice = np.zeros((1, len(self.possible_agents)), np.int64)
        for agent in acting:
            choice[0, self.possible_agents.index(agent)] = int(actions[agent])
        self._state, outcome = self.engine.tick(self._state, choice, self._random)
        late = bool(self._state.tick[0] >= self.scenario.ticks)
        number = {agent: self.possible_agents.index(agent) for agent in acting}
        reward = {agent: float(outcome.reward[0, i]) for agent, i in number.items()}
        terminated = {agent: bool(outcome.terminated[0, i]) for agent, i in number.items()}
        truncated = {agent: late and not terminated[agent] for agent in acting}
        obs, infos = self._observe(acting)
        for agent, i in number.items():
            infos[agent]["reward_parts"] = dict(zip(PARTS, outcome.parts[0, i].tolist(), strict=True))
            infos[agent]["events"] = []
            if terminated[agent] or late:
                infos[agent]["measures"] = self.measures()
        self._add_events(outcome.happened, infos)
        self.agents = [agent for agent in acting if not (terminated[agent] or truncated[agent])]
        return obs, reward, terminated, truncated, infos

    def measures(self) -> dict[str, float]:
        """Return the measures of the episode so far, for the whole town: those that `surefoot town train` prints."""
        return {name: float(x[0]) for name, x in measures(self._state.counts, len(self.possible_agents)).items()}

    def _add_events(self, happened: Happenings, infos: dict[str, dict[str, Any]]) -> None:
        """Add the events of a tick to the infos of the agents in them; events without an agent go to all."""
        for event in happened.of(0):
            who = [self.possible_agents[a] for a in (event.actor, event.other) if a >= 0]
            thing = self.scenario.objects[event.object].id if event.object >= 0 else None
            actor, other = (self.possible_agents[a] if a >= 0 else None for a in (event.actor, event.other))
            plain = {"kind": event.kind, "actor": actor, "other": other, "object": thing, "value": event.value}
            for agent in who or infos:
                if agent in infos:
                    infos[agent]["events"].append(plain)

    def state(self) -> np.ndarray:
        """Return the features of all agents, for a central critic."""
        obs, _ = self._observe(self.possible_agents)
        parts = [obs[agent] if self._maps is None else obs[agent]["features"] for agent in self.possible_agents]
        return np.concatenate(parts)

    def get_state(self) -> dict[str, Any]:
        """Return the complete state as arrays and JSON values."""
        assert self._random is not None, "call reset first"
        return {
            "arrays": self._state.to_arrays(),
            "agents": list(self.agents),
            "world": rng_to_json(self._random.world),
            "events": rng_to_json(self._random.events),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""
        self._state = State.from_arrays(state["arrays"])
        self._random = Randomness(rng_from_json(state["world"]), rng_from_json(state["events"]))
        self.agents = list(state["agents"])

    def render(self) -> np.ndarray:
        """Return a picture of the town, [H, W, 3] uint8."""
        from surefoot.town.view.picture import picture

        return picture(self.layout, self._state, 0)

    def close(self) -> None:
        """Do nothing: there are no resources."""

    def _space(self) -> spaces.Space[Any]:
        values = spaces.Box(-np.inf, np.inf, (len(self.feature_names),), np.float32)
        if self._maps is None:
            return values
        side = self._maps.window
        sheet = spaces.Box(-np.inf, np.inf, (len(self._maps.channels), side, side), np.float32)
        return spaces.Dict({"features": values, "map": sheet})

    def _observe(self, who: list[str]) -> tuple[dict[str, AgentObs], dict[str, dict[str, Any]]]:
        values, mask = (x[0] for x in self.engine.view(self._state))
        maps = None if self._maps is None else self._maps.maps(self._state)[0]
        obs: dict[str, AgentObs] = {}
        infos: dict[str, dict[str, Any]] = {}
        for agent in who:
            i = self.possible_agents.index(agent)
            obs[agent] = values[i].copy() if maps is None else {"features": values[i].copy(), "map": maps[i].copy()}
            infos[agent] = {"action_mask": mask[i].astype(np.int8)}
        return obs, infos


def parallel_env(scenario: Scenario | str = "queue_conflict", *, observations: str | None = None) -> Any:
    """Return a `TownEnv` that is an instance of PettingZoo's ParallelEnv, for tools that check the class.

    Args:
        scenario: The name of a shipped scenario, a YAML file, or a `Scenario`.
        observations: "features", "hybrid", "full" or "compact"; None for the scenario's.
    """
    try:
        from pettingzoo import ParallelEnv
    except ImportError as why:
        raise ConfigError("PettingZoo is not installed; pip install 'surefoot[town]'") from why
    kind = type("PettingZooTown", (TownEnv, ParallelEnv), {"__doc__": TownEnv.__doc__})
    return kind(scenario, observations=observations)
