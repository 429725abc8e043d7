"""The plain loop as one object: if no node looks inside a rollout, the library's collector and kernel run it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from surefoot.graph.runtime.agent import PPOAgentNode
from surefoot.graph.runtime.base import built
from surefoot.graph.runtime.flow import ORNode
from surefoot.graph.runtime.trainer import Outputs, PPOTrainerNode
from surefoot.graph.runtime.worlds import ActionProcessorNode, EnvironmentNode, StepNode
from surefoot.train.collect.collector import Collector
from surefoot.train.config import CollectConfig


class Rollouts:
    """Environment, OR, agent, action, step and trainer as one iterator: each item is one rollout and one update.

    The digits are those of the six nodes fired one after the other.
    """

    def __init__(
        self,
        env: EnvironmentNode,
        either: ORNode,
        agent: PPOAgentNode,
        action: ActionProcessorNode,
        step: StepNode,
        trainer: PPOTrainerNode,
    ) -> None:
        bounds = (action.low, action.high) if action.params.mode == "clip" else (-np.inf, np.inf)
        # The agent reads only shapes and dtypes of the first observations.
        shapes = {n: np.zeros((env.world.num_envs, *box.shape), box.dtype) for n, box in env.world.observation.items()}
        policy = agent.build(shapes, *bounds)
        trainer.begin(policy, env.world.num_envs, shapes)
        self.trainer, self.learner, self.ticks = trainer, built(trainer.learner), built(trainer.ticks)
        config = trainer.config
        self.collector = Collector(
            env.world,
            policy,
            steps=config.rollout_steps,
            gamma=config.gamma,
            config=CollectConfig(normalize_reward=trainer.normalize_rewards),
            seed=env.seed,
            path=config.path,
        )
        # The outputs of the trainer read the episodes that the collector finishes.
        self.ticks.episodes = self.collector.episodes

    def __iter__(self) -> Iterator[Outputs]:
        trainer, collector, learner = self.trainer, self.collector, self.learner
        while collector.env_steps < trainer.total_steps:
            progress = min(1.0, collector.env_steps / trainer.total_steps)
            rollout = collector.collect(learner.policy_version)
            report = learner.update(rollout, progress=progress)
            self.ticks.env_steps = collector.env_steps
            yield trainer.outputs(report)
