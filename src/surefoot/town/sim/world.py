"""`TownWorld`: many towns as one world; each agent of each town is a stream of one policy."""

from __future__ import annotations

from typing import Any

import numpy as np

from surefoot.data.spaces import ActionSpace, Box, Discrete, ObservationSpace
from surefoot.envs.api import Arrays, Step, View
from surefoot.envs.gym.snapshot import rng_from_json, rng_to_json
from surefoot.errors import CheckpointIncompatible, ConfigError, EnvError
from surefoot.town.scenarios.scenario import VARIANTS, Scenario
from surefoot.town.sim.engine import make_engine
from surefoot.town.sim.events import Happenings
from surefoot.town.sim.layout import make_layout
from surefoot.town.sim.maps import MapMaker
from surefoot.town.sim.measure import measures
from surefoot.town.sim.observe import feature_names
from surefoot.town.sim.state import COUNT, COUNTS, Randomness, State, begin, make_randomness, plan_events, replace_towns
from surefoot.town.sim.tick import TickOutcome, spawn_due_agents

FEATURES, MAP, STATE = "features", "map", "state"
"""Parts of an observation; "state", the features of all agents, is for a central critic."""
# Ended episodes whose counters are kept: enough for every measure, 230 kB.
KEPT_EPISODES = 1_000


class TownWorld:
    """`towns` copies of a scenario, stepped together; a town at the end of its episode starts the next in the same step.

    Agents that are not in town have rows that are not `valid`.

    Args:
        scenario: The town; see `load_scenario`.
        towns: Number of copies.
        variant: Observations: "features", "hybrid", "full" or "compact"; None for the scenario's.
        central: Add the features of all agents as "state", for a central critic.
        name: Name of the world; None for "town/" and the scenario's name.
    """

    inexact: str | None = None

    def __init__(
        self,
        scenario: Scenario,
        towns: int,
        *,
        variant: str | None = None,
        central: bool = False,
        name: str | None = None,
    ) -> None:
        if towns < 1:
            raise ConfigError(f"towns is {towns}; it must be at least 1")
        variant = variant or scenario.observations
        if variant not in VARIANTS:
            raise ConfigError(f"observations is {variant!r}; it must be one of {', '.join(VARIANTS)}")
        self.scenario, self.towns, self.variant, self.central = scenario, towns, variant, central
        self.stagger = False
        """For training: `reset` starts the first episodes at different ticks, so that a rollout has all times of day."""
        self.layout = make_layout(scenario)
        self.engine = make_engine(self.layout)
        self.agents = self.layout.agents
        self.name, self.num_envs = name or f"town/{scenario.name}", towns * self.agents
        self.action: ActionSpace = Discrete(self.layout.actions)
        self.feature_names = feature_names(self.layout)
        self.maps = None if variant == "features" else MapMaker(self.layout, variant)
        self.observation: ObservationSpace = {FEATURES: Box((len(self.feature_names),))}
        if self.maps is not None:
            self.observation[MAP] = Box((len(self.maps.channels), self.maps.window, self.maps.window))
        if central:
            self.observation[STATE] = Box((self.agents * len(self.feature_names),))
        self.happened = Happenings()
        """Events of the last step."""
        self.outcome: TickOutcome | None = None
        self.keep = KEPT_EPISODES
        self.finished: list[np.ndarray] = []
        """Counters of the episodes that ended, newest last; the reader clears the list."""
        self.episodes = 0
        self._counted, self._peaks, self._steps = np.zeros(len(COUNTS)), np.zeros(2), 0
        self.reset(scenario.seed)

    def reset(self, seed: int) -> View:
        self.random: Randomness = make_randomness(seed)
        self.now: State = begin(self.layout, self.towns, self.random)
        if self.stagger:
            towns = np.arange(self.towns)
            self.now.tick[:] = towns * self.scenario.ticks // self.towns
            plan_events(self.now, self.layout, towns, self.random)
        self.finished.clear()
        self._before = self.now.counts
        return self._publish()

    def step(self, action: np.ndarray) -> Step:
        choice = self._checked(action)
        state, outcome = self.engine.tick(self.now, choice, self.random)
        self._counted += (state.counts - self._before).sum(axis=0)
        self._steps += 1
        self._peaks = np.maximum(self._peaks, [outcome.rivalry.max(), outcome.avoid.max()])
        over = state.tick >= self.scenario.ticks
        truncated = outcome.acted & over[:, None] & ~outcome.terminated
        ended = outcome.terminated | truncated
        final_obs: Arrays | None = None
        if np.count_nonzero(ended):
            final_obs = self._final_obs(state, ended)
        state = spawn_due_agents(self.layout, state, self.random)
        if np.count_nonzero(over):
            self.episodes += int(np.count_nonzero(over))
            self.finished = [*self.finished, *state.counts[over]][-self.keep :]
            state = replace_towns(state, self.layout, over, self.random)
        self._before = state.counts
        self.now, self.happened, self.outcome = state, outcome.happened, outcome
        return Step(
            view=self._publish(),
            reward=outcome.reward.reshape(-1),
            terminated=outcome.terminated.reshape(-1),
            truncated=truncated.reshape(-1),
            valid=outcome.acted.reshape(-1),
            final_obs=final_obs,
        )

    def reset_streams(self, streams: np.ndarray) -> View | None:
        """Start new episodes in the towns of `streams`."""
        over = np.asarray(streams.reshape(self.towns, self.agents).any(axis=1), np.bool_)
        if np.count_nonzero(over):
            self.now = replace_towns(self.now, self.layout, over, self.random)
            self._before = self.now.counts
        return self._publish()

    def take_counts(self) -> dict[str, float]:
        """Return the counters of all towns since the last call, under the names of telemetry 1.1."""
        counts, self._counted = self._counted, np.zeros(len(COUNTS))
        peaks, self._peaks = self._peaks, np.zeros(2)
        steps, self._steps = self._steps, 0
        get = {name: float(counts[i]) for name, i in COUNT.items()}
        ticks, chats = max(get["agent_ticks"], 1.0), get["chat_success_events"]
        metrics = {name: get[name] for name in COUNTS[: COUNT["cooldown_events"]] if name != "chat_quality_sum"}
        metrics |= {
            "chat_quality_mean": get["chat_quality_sum"] / chats if chats else 0.0,
            "rollout_ticks": float(steps),
            "conflict.rivalry_max_mean_avg": get["rivalry_max_sum"] / ticks,
            "conflict.rivalry_max_max_avg": float(peaks[0]),
            "conflict.rivalry_avoid_count_mean_avg": get["rivalry_avoid_sum"] / ticks,
            "conflict.rivalry_avoid_count_max_avg": float(peaks[1]),
            "need_deficit": get["need_deficit_sum"] / ticks,
            "unserved_share": get["unserved_ticks"] / ticks,
            "waiting_share": get["waiting_ticks"] / ticks,
        }
        if self.layout.somebody_works:
            metrics["punctuality"] = get["punctual_ticks"] / max(get["shift_ticks"], 1.0)
        return metrics

    def measured(self) -> dict[str, np.ndarray]:
        """Return the measures of the episodes in `finished`, [n] each."""
        counts = np.stack(self.finished) if self.finished else np.zeros((0, len(COUNTS)))
        return measures(counts, self.agents)

    def state(self) -> dict[str, Any]:
        return {
            "arrays": self.now.to_arrays(),
            "world": rng_to_json(self.random.world),
            "events": rng_to_json(self.random.events),
            "counted": self._counted.copy(),
            "peaks": self._peaks.copy(),
            "steps": self._steps,
            "episodes": self.episodes,
            "scenario": self.scenario.name,
        }

    def set_state(self, state: dict[str, Any]) -> View:
        arrays = state["arrays"]
        if state["scenario"] != self.scenario.name or np.shape(arrays["here"]) != (self.towns, self.agents):
            raise CheckpointIncompatible(
                f"the state is of {state['scenario']} with {list(np.shape(arrays['here']))} towns and agents; this is "
                f"{self.scenario.name} with {[self.towns, self.agents]}"
            )
        self.now = State.from_arrays(arrays)
        self.random = Randomness(rng_from_json(state["world"]), rng_from_json(state["events"]))
        self._before, self._counted = self.now.counts, np.array(state["counted"])
        self._peaks, self._steps, self.episodes = np.array(state["peaks"]), int(state["steps"]), int(state["episodes"])
        return self._publish()

    def render(self) -> np.ndarray | None:
        from surefoot.town.view.picture import picture

        return picture(self.layout, self.now, 0, self.happened)

    def close(self) -> None:
        """Do nothing: there are no resources."""

    @property
    def mask(self) -> np.ndarray:
        """[towns, agents, actions] bool: the allowed actions."""
        return self._mask

    def _checked(self, action: np.ndarray) -> np.ndarray:
        action = np.asarray(action)
        if action.shape != (self.num_envs,):
            raise EnvError(f"{self.name} takes [{self.num_envs}] actions, one per stream; got {list(action.shape)}")
        if action.size and (action.min() < 0 or action.max() >= self.layout.actions):
            raise EnvError(
                f"{self.name} has actions 0 to {self.layout.actions - 1}; got {action.min()} to {action.max()}"
            )
        return action.reshape(self.towns, self.agents)

    def _publish(self) -> View:
        obs, self._mask = self._observe(self.now)
        return View(obs=obs, action_mask=self._mask.reshape(self.num_envs, -1))

    def _observe(self, state: State) -> tuple[Arrays, np.ndarray]:
        values, mask = self.engine.view(state)
        n = self.num_envs
        obs: Arrays = {FEATURES: values.reshape(n, -1)}
        if self.maps is not None:
            obs[MAP] = self.maps.maps(state).reshape(n, *self.observation[MAP].shape)
        if self.central:
            obs[STATE] = np.repeat(values.reshape(self.towns, -1), self.agents, axis=0)
        return obs, mask

    def _final_obs(self, state: State, ended: np.ndarray) -> Arrays:
        """Return the last observations, also of agents that have left: from their last position."""
        if np.count_nonzero(ended & ~state.present):
            state = state.copy()
            state.present[ended] = True
        return self._observe(state)[0]
