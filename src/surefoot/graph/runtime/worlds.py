"""Environments and towns, and the nodes between them and a policy."""

from __future__ import annotations

from typing import Any

import numpy as np

from surefoot.envs.api import Arrays, View, World
from surefoot.envs.make import make_world
from surefoot.errors import ConfigError, EnvError
from surefoot.graph.nodes.learning import MASK
from surefoot.graph.nodes.worlds import isaac_missing
from surefoot.graph.runtime.base import RuntimeNode
from surefoot.town.scenarios.scenario import load_scenario
from surefoot.town.sim.world import TownWorld
from surefoot.train.collect.episodes import EpisodeLog
from surefoot.train.collect.nonfinite import NonFiniteGuard
from surefoot.train.collect.tick_collector import ActionRecord, as_array


class EnvironmentNode(RuntimeNode):
    """N copies of an environment; fires in the first tick only."""

    def setup(self) -> None:
        if self.params.backend == "isaaclab":
            raise EnvError(isaac_missing(self.params.env_id))
        self.world: World = make_world(self.params.env_id, self.params.num_envs, backend=self.params.backend)

    def __call__(self) -> tuple[World, Arrays]:
        return self.world, with_mask(self.world.reset(self.seed))

    def snapshot(self) -> dict[str, Any]:
        return {"world": self.world.state()}

    def restore(self, saved: dict[str, Any]) -> None:
        # An environment that cannot restore its state begins new episodes; `current` are its observations then.
        self.current = with_mask(self.world.set_state(saved["world"]))

    def close(self) -> None:
        """Close the environment."""
        self.world.close()


class StepNode(RuntimeNode):
    """One step of all copies; raises on observations and rewards that are not finite."""

    def setup(self) -> None:
        self.guard: NonFiniteGuard | None = None
        self.lengths = EpisodeLog(0)

    def __call__(self, sim_handle: World, actions: np.ndarray, trigger: Any = None) -> tuple[Any, ...]:
        # The environment arrives as an input, so it is only known now.
        if self.guard is None or self.guard.world is not sim_handle:
            self.guard, self.lengths = NonFiniteGuard(sim_handle, "raise"), EpisodeLog(sim_handle.num_envs)
        step, _ = self.guard.examine(sim_handle.step(actions), self.lengths)
        ended = step.terminated | step.truncated
        successors, final = step.view.obs, step.final_obs
        # Only the rows of final_obs whose episode ended are defined.
        if final is not None:
            masks = {n: ended.reshape(-1, *(1,) * (x.ndim - 1)) for n, x in successors.items()}
            successors = final if ended.all() else {n: np.where(masks[n], final[n], x) for n, x in successors.items()}
        flags = (ended, step.terminated, step.truncated)
        return (with_mask(step.view), step.reward, *flags, successors, step.valid, step.stats)

    def snapshot(self) -> dict[str, Any]:
        return {"lengths": self.lengths.state()}

    def restore(self, saved: dict[str, Any]) -> None:
        self.lengths.set_state(saved["lengths"])


def with_mask(view: View) -> Arrays:
    """Return the observations of a view, with its action mask as a part if it has one."""
    return view.obs if view.action_mask is None else {**view.obs, MASK: view.action_mask}


class ActionProcessorNode(RuntimeNode):
    """The policy's actions as the environment takes them."""

    def setup(self) -> None:
        bounds = (self.params.low, self.params.high, self.params.factor)
        self.low, self.high, self.factor = (np.asarray(x, np.float32) for x in bounds)
        # Halves are taken first: high - low would overflow for bounds near the largest float.
        self.middle, self.half_width = self.high / 2.0 + self.low / 2.0, self.high / 2.0 - self.low / 2.0

    def __call__(self, policy_output: ActionRecord) -> np.ndarray:
        action = as_array(policy_output.action)
        match self.params.mode:
            case "clip":
                return np.clip(action, self.low, self.high)
            case "scale":
                return np.clip(action * self.factor, self.low, self.high)
            case "tanh":
                return np.clip(self.middle + self.half_width * np.tanh(action), self.low, self.high)
            case _:
                return action


class RewardShapingNode(RuntimeNode):
    """scale · r + shift, clipped to ± limit."""

    def __call__(self, rewards: np.ndarray) -> np.ndarray:
        limit = self.params.limit
        return np.clip(self.params.scale * rewards + self.params.shift, -limit, limit)


class ObservationNormalizerNode(RuntimeNode):
    """Running mean and standard deviation of each part; they change in the tick after an update."""

    def setup(self) -> None:
        self.parts: dict[str, Any] = {}
        self.pending: list[Arrays] = []
        """Observations since the last update."""

    def __call__(self, observations: Arrays, update: Any = None) -> tuple[Arrays, ObservationNormalizerNode]:
        # Not earlier: statistics that change within a rollout would make the probability ratios wrong.
        if update is not None and self.pending:
            for name, part in self.parts.items():
                part.update(np.concatenate([obs[name].reshape(len(obs[name]), -1) for obs in self.pending]))
            self.pending = []
        self.pending.append(observations)
        return self.normalised(observations), self

    def normalised(self, observations: Arrays) -> Arrays:
        """Return the observations normalised by the current statistics."""
        import torch

        from surefoot.nets.normalizer import Normalizer

        out: Arrays = {}
        for name, x in observations.items():
            if name == MASK:
                out[name] = x
                continue
            if name not in self.parts:
                self.parts[name] = Normalizer(x[0].size, clip=self.params.clip)
            with torch.no_grad():
                out[name] = self.parts[name](torch.from_numpy(x.reshape(len(x), -1))).numpy().reshape(x.shape)
        return out

    def state_dict(self) -> dict[str, Any]:
        """Return the statistics of all parts."""
        return {f"{name}.{key}": x for name, part in self.parts.items() for key, x in part.state_dict().items()}

    def snapshot(self) -> dict[str, Any]:
        parts = {name: dict(part.state_dict()) for name, part in self.parts.items()}
        pending = {name: np.stack([obs[name] for obs in self.pending]) for name in parts if self.pending}
        return {"parts": parts, "seen": pending}

    def restore(self, saved: dict[str, Any]) -> None:
        import torch

        for name, part in self.parts.items():
            part.load_state_dict({key: torch.as_tensor(x) for key, x in saved["parts"][name].items()})
        rows = {name: np.array(x) for name, x in saved["seen"].items()}
        count = len(next(iter(rows.values()))) if rows else 0
        self.pending = [{name: x[k] for name, x in rows.items()} for k in range(count)]


class NormalizeNode(RuntimeNode):
    """Other observations, normalised by the same statistics."""

    def __call__(self, observations: Arrays, normalizer: ObservationNormalizerNode) -> Arrays:
        return normalizer.normalised(observations)


class ScenarioNode(EnvironmentNode):
    """Copies of a town scenario; fires in the first tick only."""

    def setup(self) -> None:
        variant = None if self.params.observations == "scenario" else self.params.observations
        self.town = self.world = TownWorld(load_scenario(self.params.scenario), self.params.towns, variant=variant)


class TownStepNode(StepNode):
    """One tick of all towns."""


class ConflictStatsNode(RuntimeNode):
    """Counts of the towns between two updates; the towns hold them, so there is nothing to restore here."""

    def __call__(self, trigger: Any, sim_handle: World) -> tuple[dict[str, float], float]:
        if not isinstance(sim_handle, TownWorld):
            raise ConfigError(f"{sim_handle.name} is not a town; ConflictStats takes the sim_handle of a Scenario")
        counts = sim_handle.take_counts()
        agent_ticks = max(counts["rollout_ticks"] * sim_handle.agents * sim_handle.towns, 1.0)
        return counts, 100.0 * counts["queue_conflict_events"] / agent_ticks
