"""A small run and a backend without processes, for the tests of rollout backends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from surefoot.learn.config import PPOConfig
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.scale.backend import WORLDS, BackendSpec, Piece, shares
from surefoot.scale.remote_training import RemoteTraining
from surefoot.scale.rollout_worker import RolloutWorker
from surefoot.train.config import CollectConfig
from surefoot.train.spec import RunSpec
from surefoot.train.spec_worlds import world_maker


def a_spec(env: str = "CartPole-v1", **more: Any) -> RunSpec:
    ppo = {"rollout_steps": 16, "envs": 5, "minibatch_size": 40, "epochs": 2, "lr": 3e-3, "device": "cpu"}
    fixed = {name: more.pop(name) for name in ("rollouts", "overlap", "total_steps") if name in more}
    return RunSpec(
        env=env,
        preset="sb3",
        ppo=PPOConfig(**(ppo | more)),
        net=NetConfig(hidden=(8,), normalize_obs=True),
        collect=CollectConfig(normalize_reward=True),
        eval_every=0,
        checkpoint_every=10_000,
        **({"total_steps": 400} | fixed),
    )


def weights_of(spec: RunSpec) -> dict[str, np.ndarray]:
    world = world_maker(spec)(1)
    policy = ActorCritic(world.observation, world.action, spec.net, seed=spec.seed)
    return {name: x.numpy().copy() for name, x in policy.state_dict().items()}


class InProcess:
    """The same workers without processes: what a learner does with pieces needs none."""

    name = "in process"

    def __init__(self, spec: RunSpec, workers: int) -> None:
        self.workers = workers
        self.rollout_workers = [
            RolloutWorker(spec.to_json(), k, n, 0, WORLDS) for k, n in enumerate(shares(spec.ppo.envs, workers))
        ]
        self.pieces: list[Piece] = []
        self.requests = 0

    def publish(self, weights: Any, version: int) -> None:
        self.weights, self.version = {name: x.copy() for name, x in weights.items()}, version

    def ask(self) -> None:
        self.requests += 1
        for worker in self.rollout_workers:
            worker.load(self.weights)
        self.pieces = [worker.collect(self.version) for worker in self.rollout_workers]

    def receive(self) -> list[Piece]:
        return self.pieces

    def states(self) -> list[dict[str, Any]]:
        return [worker.state() for worker in self.rollout_workers]

    def set_states(self, states: Sequence[dict[str, Any]]) -> None:
        for worker, state in zip(self.rollout_workers, states, strict=True):
            worker.set_state(state)

    def take_losses(self) -> list[str]:
        return []

    def close(self) -> None:
        for worker in self.rollout_workers:
            worker.close()


def remote(spec: RunSpec, workers: int = 2, backend: Any = None) -> RemoteTraining:
    return RemoteTraining(
        spec, backend=backend or InProcess(spec, workers), placement=BackendSpec("local", workers, "", False)
    )
