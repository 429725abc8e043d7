"""Environments and what lies between them and a policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from surefoot.envs.api import Arrays, View, World
from surefoot.envs.api import Step as Answer
from surefoot.envs.make import make_world
from surefoot.errors import EnvError
from surefoot.train.collect.episodes import EpisodeLog
from surefoot.train.collect.nonfinite import NonFiniteGuard
from surefoot.train.collect.tick_collector import Chosen, as_array

MASK = "action_mask"


class Environment:
    """N copies of an environment; its first observations are said once."""

    def __init__(self, env_id: str, num_envs: int = 64, backend: str = "auto", *, seed: int = 0) -> None:
        if backend == "isaaclab":
            from surefoot.graph.catalogue.worlds import isaac_missing

            raise EnvError(isaac_missing(env_id))
        self.world = make_world(env_id, num_envs, backend=backend)  # type: ignore[arg-type]
        self.num_envs, self.seed = num_envs, seed

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


class Step:
    """One step of all copies; a number that is not finite stops the run where it enters."""

    def __init__(self) -> None:
        self.guard: NonFiniteGuard | None = None
        self.lengths = EpisodeLog(0)

    def __call__(self, sim_handle: World, actions: np.ndarray, trigger: Any = None) -> tuple[Any, ...]:
        if self.guard is None or self.guard.world is not sim_handle:
            self.guard, self.lengths = NonFiniteGuard(sim_handle, "raise"), EpisodeLog(sim_handle.num_envs)
        step, _ = self.guard.examine(sim_handle.step(actions), self.lengths)
        seen = shown(step.view)
        ended = step.terminated | step.truncated
        return (
            seen,
            step.reward,
            ended,
            step.terminated,
            step.truncated,
            step.view.obs if step.final_obs is None else _successors(step, ended),
            step.valid,
            step.stats,
        )

    def snapshot(self) -> dict[str, Any]:
        """Nothing but what is only told."""
        return {"lengths": self.lengths.state()}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from there."""
        self.lengths.set_state(saved["lengths"])


def _successors(step: Answer, ended: np.ndarray) -> Arrays:
    """Where the step really led: of `final_obs` only the rows of streams that ended need be true."""
    assert step.final_obs is not None
    final = step.final_obs
    if ended.all():
        return final
    return {n: np.where(ended.reshape(-1, *(1,) * (x.ndim - 1)), final[n], x) for n, x in step.view.obs.items()}


def shown(view: View) -> Arrays:
    """Observations as they go along an edge: with what is allowed among them, where that is said."""
    return view.obs if view.action_mask is None else {**view.obs, MASK: view.action_mask}


Bound = float | Sequence[float]


class ActionProcessor:
    """The policy's choice as the environment takes it."""

    def __init__(self, mode: str = "clip", low: Bound = -1.0, high: Bound = 1.0, factor: Bound = 1.0) -> None:
        self.mode = mode
        self.low, self.high = np.asarray(low, np.float32), np.asarray(high, np.float32)
        self.factor = np.asarray(factor, np.float32)
        self.middle, self.half_width = self.high / 2.0 + self.low / 2.0, self.high / 2.0 - self.low / 2.0

    def __call__(self, policy_output: Chosen) -> np.ndarray:
        action = as_array(policy_output.action)
        match self.mode:
            case "clip":
                return np.clip(action, self.low, self.high)
            case "scale":
                return np.clip(action * self.factor, self.low, self.high)
            case "tanh":
                return np.clip(self.middle + self.half_width * np.tanh(action), self.low, self.high)
            case _:
                return action


class RewardShaping:
    """scale · r + shift, within ± limit."""

    def __init__(self, scale: float = 1.0, shift: float = 0.0, limit: float = 1e9) -> None:
        self.scale, self.shift, self.limit = scale, shift, limit

    def __call__(self, rewards: np.ndarray) -> np.ndarray:
        return np.clip(self.scale * rewards + self.shift, -self.limit, self.limit)


class ObservationNormalizer:
    """Running mean and deviation of each part; they move in the tick after an update."""

    def __init__(self, clip: float = 10.0) -> None:
        self.clip = clip
        self.parts: dict[str, Any] = {}
        self.seen: list[Arrays] = []

    def __call__(self, observations: Arrays, update: Any = None) -> tuple[Arrays, ObservationNormalizer]:
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
                self.parts[name] = Normalizer(x[0].size, clip=self.clip)
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


class Normalize:
    """Other observations by the same statistics."""

    def __call__(self, observations: Arrays, normalizer: ObservationNormalizer) -> Arrays:
        return normalizer.normalised(observations)
