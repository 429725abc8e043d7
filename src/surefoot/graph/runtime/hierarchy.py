"""Two policies: a manager that sets sub-goals, and a worker that is rewarded for reaching them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from surefoot.data.seeds import seed_for
from surefoot.envs.api import Arrays, View, World
from surefoot.envs.goals import GoalSpec, GoalWorld, landmarks, offsets
from surefoot.errors import ConfigError
from surefoot.graph.runtime.agent import PPOAgentNode
from surefoot.graph.runtime.base import COMPLETE, RuntimeNode, built, copy_weights
from surefoot.graph.runtime.worlds import with_mask
from surefoot.learn.config import PPOConfig
from surefoot.learn.learner import Learner
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.nets.policy import load_weights
from surefoot.train.algorithms.hierarchy import Decisions


class LowLevelPPONode(PPOAgentNode):
    """An agent whose observations include its sub-goal."""


class HighLevelPPONode(RuntimeNode):
    """The manager: sets the sub-goals and learns in the tick after the worker's update."""

    def setup(self) -> None:
        # A step of the manager lasts up to `steps_per_goal` environment steps, so it discounts by as many.
        gamma = self.params.gamma**self.params.steps_per_goal
        seed = seed_for("manager", self.seed)
        self.config = self.settings(PPOConfig, gamma=gamma, seed=seed, device="cpu", path=self.path)
        self.policy: ActorCritic | None = None
        self.learner: Learner | None = None
        self.decisions: Decisions | None = None
        self.world: GoalWorld | None = None
        self.steps_taken = 0

    def bind(self, base: World, goal: GoalSpec, *, progress: float, env_share: float) -> GoalWorld:
        """Return the environment with sub-goals that this manager sets."""
        net, steps, every = self.settings(NetConfig), self.params.rollout_steps, self.params.steps_per_goal
        self.policy = ActorCritic(base.observation, goal.space, net, seed=seed_for("manager", self.seed))
        updates = max(1, -(-self.total_steps // (steps * base.num_envs)))
        self.learner = Learner(self.policy, self.config, total_updates=updates)
        self.decisions = Decisions(
            self.policy, base.num_envs, steps=steps, every=every, gamma=self.params.gamma, seed=self.seed
        )
        self.world = GoalWorld(base, goal, self.decisions, every=every, progress=progress, env_share=env_share)
        return self.world

    def __call__(
        self, sim_handle: World, trigger: Any = None
    ) -> tuple[HighLevelPPONode, str | None, dict[str, Any] | None]:
        # The trigger is delayed by a tick: the worker has learned in the tick before.
        if trigger is None or self.learner is None or self.decisions is None or self.world is None:
            return self, None, None
        progress = min(1.0, self.steps_taken / self.total_steps)
        rollout = self.decisions.rollout(built(self.world.view), self.learner.policy_version)
        self.steps_taken += self.params.rollout_steps * self.world.num_envs
        report = self.learner.update(rollout, progress=progress)
        self.decisions.episodes.take_fresh()
        mean_return, mean_length, *_ = self.decisions.episodes.recent()
        metrics = {"update": report.update, "env_steps": self.steps_taken, "decisions": rollout.samples}
        metrics |= report.metrics()
        if mean_return is not None:
            metrics |= {"return": mean_return, "length": mean_length}
        return self, COMPLETE, metrics

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Return the weights of the manager."""
        return {} if self.policy is None else dict(self.policy.state_dict())

    def snapshot(self) -> dict[str, Any]:
        return {
            "weights": copy_weights(self),
            "learner": built(self.learner).state(),
            "decisions": built(self.decisions).state(),
            "world": built(self.world).state(),
            "steps_taken": self.steps_taken,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        world, decisions = built(self.world), built(self.decisions)
        load_weights(built(self.policy), saved["weights"])
        built(self.learner).set_state(saved["learner"])
        decisions.set_state(saved["decisions"])
        self.steps_taken = int(saved["steps_taken"])
        world.set_state(saved["world"])
        # Environments that cannot be restored begin new episodes, so all sub-goals are set again.
        if world.inexact is not None:
            for stream in range(world.num_envs):
                decisions.episodes.forget(stream)
            decisions.reset_tape()
            world.begin()


class SubGoalNode(RuntimeNode):
    """The environment as the worker sees it; after an update of the manager all sub-goals are set again."""

    world: GoalWorld | None = None

    def __call__(
        self,
        sim_handle: World,
        manager: HighLevelPPONode,
        first: Arrays | None = None,
        observations: Arrays | None = None,
        renew: Any = None,
    ) -> tuple[GoalWorld, Arrays]:
        if self.world is None:
            goal, params = self._goal(sim_handle), self.params
            self.world = manager.bind(sim_handle, goal, progress=params.progress, env_share=params.env_share)
            self.world.view = View(obs=built(first))
            return self.world, self.world.begin().obs
        if renew is not None:
            # Open sub-goals were set by the old policy of the manager.
            built(manager.decisions).reset_tape()
            return self.world, self.world.begin().obs
        return self.world, built(observations)

    @property
    def current(self) -> Arrays:
        """The observations of the worker."""
        return with_mask(built(built(self.world).view))

    def _goal(self, world: World) -> GoalSpec:
        if self.params.goals == "offsets":
            columns = [each - 1 for each in self.params.coordinates]

            def place(obs: Arrays) -> np.ndarray:
                return obs["obs"][:, columns]

            return offsets(len(columns), self.params.reach, place, near=self.params.near)
        maze: Any = getattr(world, "task", None)
        if not all(hasattr(maze, name) for name in ("landmarks", "where", "nearby")):
            raise ConfigError(
                f'{world.name} has no rooms; goals="rooms" needs a maze such as surefoot/LongMaze-v0. Use goals="offsets"'
            )
        return landmarks(maze.landmarks, lambda obs: maze.where(obs["obs"]), near=self.params.near, among=maze.nearby)
