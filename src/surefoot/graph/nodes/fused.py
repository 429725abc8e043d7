"""The plain loop in one: where nothing looks into a rollout, the library's collector walks it, kernel and all."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from surefoot.graph.nodes.agent import PPOAgent
from surefoot.graph.nodes.merge import Or
from surefoot.graph.nodes.trainer import PPOTrainer, Said
from surefoot.graph.nodes.worlds import ActionProcessor, Environment, Step
from surefoot.train.collect.collector import Collector
from surefoot.train.collect.tick_collector import Ticks
from surefoot.train.config import CollectConfig


class Rollouts:
    """Environment, OR, agent, action, step and trainer as one: each turn is `horizon_length` ticks and an update.

    The digits are those of the six nodes fired one after the other.
    """

    def __init__(
        self, env: Environment, either: Or, agent: PPOAgent, action: ActionProcessor, step: Step, trainer: PPOTrainer
    ) -> None:
        clips = action.mode == "clip"
        bounds = (action.low, action.high) if clips else (-np.inf, np.inf)
        first = {name: np.zeros((env.num_envs, *box.shape), box.dtype) for name, box in env.world.observation.items()}
        policy = agent.build(first, *bounds)
        trainer.begin(policy, env.num_envs, first)
        assert trainer.learner is not None
        assert isinstance(trainer.ticks, Ticks)
        self.trainer, self.learner = trainer, trainer.learner
        config = trainer.config
        self.collector = Collector(
            env.world,
            policy,
            steps=config.steps,
            gamma=config.gamma,
            config=CollectConfig(normalize_reward=trainer.normalize_rewards),
            seed=env.seed,
            path=config.path,
        )
        trainer.ticks.episodes = self.collector.episodes

    def __iter__(self) -> Iterator[Said]:
        trainer, collector, learner = self.trainer, self.collector, self.learner
        assert trainer.ticks is not None
        while collector.env_steps < trainer.total_steps:
            progress = min(1.0, collector.env_steps / trainer.total_steps)
            rollout = collector.collect(learner.policy_version)
            report = learner.update(rollout, progress=progress)
            trainer.ticks.env_steps = collector.env_steps
            yield trainer.said(report)
