"""The plain loop in one: where nothing looks into a rollout, the library's collector walks it, kernel and all."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from surefoot.graph.runtime.agent import PPOAgentNode
from surefoot.graph.runtime.flow import ORNode
from surefoot.graph.runtime.trainer import Outputs, PPOTrainerNode
from surefoot.graph.runtime.worlds import ActionProcessorNode, EnvironmentNode, StepNode
from surefoot.train.collect.collector import Collector
from surefoot.train.collect.tick_collector import Ticks
from surefoot.train.config import CollectConfig


class Rollouts:
    """Environment, OR, agent, action, step and trainer as one: each turn is `horizon_length` ticks and an update.

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
        clips = action.params.mode == "clip"
        bounds = (action.low, action.high) if clips else (-np.inf, np.inf)
        first = {
            name: np.zeros((env.world.num_envs, *box.shape), box.dtype) for name, box in env.world.observation.items()
        }
        policy = agent.build(first, *bounds)
        trainer.begin(policy, env.world.num_envs, first)
        assert trainer.learner is not None
        assert isinstance(trainer.ticks, Ticks)
        self.trainer, self.learner = trainer, trainer.learner
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
        trainer.ticks.episodes = self.collector.episodes

    def __iter__(self) -> Iterator[Outputs]:
        trainer, collector, learner = self.trainer, self.collector, self.learner
        assert trainer.ticks is not None
        while collector.env_steps < trainer.total_steps:
            progress = min(1.0, collector.env_steps / trainer.total_steps)
            rollout = collector.collect(learner.policy_version)
            report = learner.update(rollout, progress=progress)
            trainer.ticks.env_steps = collector.env_steps
            yield trainer.outputs(report)
