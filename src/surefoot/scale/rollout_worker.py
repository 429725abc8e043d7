"""A rollout worker: its environments, stepped with the published weights."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from surefoot.data.seeds import seed_for
from surefoot.nets.actor_critic import ActorCritic
from surefoot.scale.backend import Piece, Weights
from surefoot.train.collect.collector import Collector
from surefoot.train.device import pin_threads
from surefoot.train.spec import RunSpec


class RolloutWorker:
    """Environments, a policy and a collector. Rewards are returned unscaled: the learner's process scales them."""

    def __init__(self, spec_json: Mapping[str, Any], worker: int, streams: int, generation: int, worlds: str) -> None:
        pin_threads(1)
        spec = RunSpec.from_json(spec_json)
        self.worker, self.generation = worker, generation
        # A replacement must not repeat the episodes of the worker it replaces.
        seed = seed_for(f"rollouts of worker {worker}, {generation}", spec.seed) % 2**31
        module, _, function = worlds.partition(":")
        self.world = getattr(importlib.import_module(module), function)(spec)(streams)
        self.policy = ActorCritic(self.world.observation, self.world.action, spec.net, seed=spec.seed)
        self.collector = Collector(
            self.world,
            self.policy,
            steps=spec.ppo.rollout_steps,
            gamma=spec.ppo.gamma,
            config=spec.collect.replace(normalize_reward=False),
            seed=seed,
            path=spec.ppo.path,
        )
        self._fresh = generation > 0
        self._pieces = 0

    def load(self, weights: Weights) -> None:
        """Use these weights from now on."""
        self.policy.load_state_dict({name: torch.from_numpy(np.array(x)) for name, x in weights.items()})

    def collect(self, version: int) -> Piece:
        """Collect one piece."""
        collector, before = self.collector, self.collector.env_steps
        rollout = collector.collect(version)
        piece = Piece(
            worker=self.worker,
            serial=f"{self.worker}.{self.generation}.{self._pieces}",
            version=version,
            rollout=rollout,
            episodes=collector.episodes.take_fresh(),
            steps=collector.env_steps - before,
            seconds=dict(collector.seconds),
            began_anew=self._fresh,
        )
        self._fresh, self._pieces = False, self._pieces + 1
        return piece

    def state(self) -> dict[str, Any]:
        """Return the state of its streams, with tensors as arrays."""
        return _plain({**self.collector.state(), "generation": self.generation, "made": self._pieces})

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned."""
        self.generation, self._pieces, self._fresh = int(state["generation"]), int(state["made"]), False
        self.collector.set_state(state)

    def close(self) -> None:
        self.world.close()


def _plain(tree: Any) -> Any:
    if isinstance(tree, torch.Tensor):
        return tree.detach().cpu().numpy().copy()
    if isinstance(tree, dict):
        return {name: _plain(branch) for name, branch in tree.items()}
    return tree
