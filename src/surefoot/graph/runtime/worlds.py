"""Environments and what lies between them and a policy."""

from __future__ import annotations

from typing import Any

import numpy as np

from surefoot.envs.api import Arrays, View, World
from surefoot.envs.make import make_world
from surefoot.errors import EnvError
from surefoot.graph.nodes.worlds import isaac_missing
from surefoot.graph.runtime.base import RuntimeNode
from surefoot.train.collect.episodes import EpisodeLog
from surefoot.train.collect.nonfinite import NonFiniteGuard
from surefoot.train.collect.tick_collector import ActionRecord, as_array

MASK = "action_mask"


class EnvironmentNode(RuntimeNode):
    """N copies of an environment; its first observations are said once."""

    def setup(self) -> None:
        """Make the environment."""
        if self.params.backend == "isaaclab":
            raise EnvError(isaac_missing(self.params.env_id))
        self.world: World = make_world(self.params.env_id, self.params.num_envs, backend=self.params.backend)

    def __call__(self) -> tuple[World, Arrays]:
        return self.world, shown(self.world.reset(self.seed))

    def snapshot(self) -> dict[str, Any]:
        """The world's state."""
        return {"world": self.world.state()}

    def restore(self, saved: dict[str, Any]) -> None:
        """Put the world back, or start new episodes where that cannot be; `seen` is what its copies see then."""
        self.seen = shown(self.world.set_state(saved["world"]))

    def close(self) -> None:
        """Free the world."""
        self.world.close()


class StepNode(RuntimeNode):
    """One step of all copies; a number that is not finite stops the run where it enters."""

    def setup(self) -> None:
        """Nothing was seen yet."""
        self.guard: NonFiniteGuard | None = None
        self.lengths = EpisodeLog(0)

    def __call__(self, sim_handle: World, actions: np.ndarray, trigger: Any = None) -> tuple[Any, ...]:
        if self.guard is None or self.guard.world is not sim_handle:
            self.guard, self.lengths = NonFiniteGuard(sim_handle, "raise"), EpisodeLog(sim_handle.num_envs)
        step, _ = self.guard.examine(sim_handle.step(actions), self.lengths)
        seen = shown(step.view)
        ended = step.terminated | step.truncated
        successors, final = step.view.obs, step.final_obs
        if final is not None:  # of it only the rows of streams that ended need be true
            masks = {n: ended.reshape(-1, *(1,) * (x.ndim - 1)) for n, x in successors.items()}
            successors = final if ended.all() else {n: np.where(masks[n], final[n], x) for n, x in successors.items()}
        return (
            seen,
            step.reward,
            ended,
            step.terminated,
            step.truncated,
            successors,
            step.valid,
            step.stats,
        )

    def snapshot(self) -> dict[str, Any]:
        """Nothing but what is only told."""
        return {"lengths": self.lengths.state()}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from there."""
        self.lengths.set_state(saved["lengths"])


def shown(view: View) -> Arrays:
    """Observations as they go along an edge: with what is allowed among them, where that is said."""
    return view.obs if view.action_mask is None else {**view.obs, MASK: view.action_mask}


class ActionProcessorNode(RuntimeNode):
    """The policy's choice as the environment takes it."""

    def setup(self) -> None:
        """Bounds as arrays."""
        bounds = (self.params.low, self.params.high, self.params.factor)
        self.low, self.high, self.factor = (np.asarray(x, np.float32) for x in bounds)
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
    """scale · r + shift, within ± limit."""

    def __call__(self, rewards: np.ndarray) -> np.ndarray:
        limit = self.params.limit
        return np.clip(self.params.scale * rewards + self.params.shift, -limit, limit)


class ObservationNormalizerNode(RuntimeNode):
    """Running mean and deviation of each part; they move in the tick after an update."""

    def setup(self) -> None:
        """No statistics yet."""
        self.parts: dict[str, Any] = {}
        self.seen: list[Arrays] = []

    def __call__(self, observations: Arrays, update: Any = None) -> tuple[Arrays, ObservationNormalizerNode]:
        if update is not None and self.seen:
            for name, part in self.parts.items():
                part.update(np.concatenate([obs[name].reshape(len(obs[name]), -1) for obs in self.seen]))
            self.seen = []
        self.seen.append(observations)
        return self.normalised(observations), self

    def normalised(self, observations: Arrays) -> Arrays:
        """By the statistics as they are."""
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
        """The statistics, for comparing and keeping."""
        return {f"{name}.{key}": x for name, part in self.parts.items() for key, x in part.state_dict().items()}

    def snapshot(self) -> dict[str, Any]:
        """The statistics, and what they have not taken in yet."""
        parts = {name: dict(part.state_dict()) for name, part in self.parts.items()}
        return {
            "parts": parts,
            "seen": {name: np.stack([obs[name] for obs in self.seen]) for name in parts if self.seen},
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from there."""
        import torch

        for name, part in self.parts.items():
            part.load_state_dict({key: torch.as_tensor(x) for key, x in saved["parts"][name].items()})
        rows = {name: np.array(x) for name, x in saved["seen"].items()}
        count = len(next(iter(rows.values()))) if rows else 0
        self.seen = [{name: x[k] for name, x in rows.items()} for k in range(count)]


class NormalizeNode(RuntimeNode):
    """Other observations by the same statistics."""

    def __call__(self, observations: Arrays, normalizer: ObservationNormalizerNode) -> Arrays:
        return normalizer.normalised(observations)
