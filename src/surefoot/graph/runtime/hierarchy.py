"""Two policies, one above the other, of the library's parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from surefoot.data.seeds import seed_for
from surefoot.envs.api import Arrays, View, World
from surefoot.envs.goals import GoalSpec, GoalWorld, landmarks, offsets
from surefoot.errors import ConfigError
from surefoot.graph.runtime.agent import PPOAgentNode
from surefoot.graph.runtime.base import COMPLETE, RuntimeNode
from surefoot.graph.runtime.worlds import shown
from surefoot.learn.config import PPOConfig
from surefoot.learn.learner import Learner
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.nets.policy import load_weights
from surefoot.train.algorithms.hierarchy import Decisions


class LowLevelPPONode(PPOAgentNode):
    """An agent that sees its sub-goal."""


class HighLevelPPONode(RuntimeNode):
    """The manager: decides where streams go, and learns in the tick after the worker did."""

    def setup(self) -> None:
        """Read the configs; a step of the manager lasts up to `steps_per_goal` steps, so it discounts by as many."""
        gamma = self.params.gamma**self.params.steps_per_goal
        seed = seed_for("manager", self.seed)
        self.config = self.settings(PPOConfig, gamma=gamma, seed=seed, device="cpu", path=self.path)
        self.policy: ActorCritic | None = None
        self.learner: Learner | None = None
        self.decisions: Decisions | None = None
        self.world: GoalWorld | None = None
        self.steps_taken = 0

    def bind(self, base: World, goal: GoalSpec, *, progress: float, env_share: float) -> GoalWorld:
        """The world with sub-goals that this manager sets."""
        net, steps, every = self.settings(NetConfig), self.params.horizon_length, self.params.steps_per_goal
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
        if trigger is None or self.learner is None or self.decisions is None or self.world is None:
            return self, None, None
        assert self.world.view is not None
        progress = min(1.0, self.steps_taken / self.total_steps)
        managed = self.decisions.rollout(self.world.view, self.learner.policy_version)
        self.steps_taken += self.params.horizon_length * self.world.num_envs
        report = self.learner.update(managed, progress=progress)
        self.decisions.episodes.take_fresh()
        episodes = self.decisions.episodes.recent()
        metrics = {
            "update": report.update,
            "env_steps": self.steps_taken,
            "decisions": managed.samples,
            **report.metrics(),
        }
        if episodes[0] is not None:
            metrics |= {"return": episodes[0], "length": episodes[1]}
        return self, COMPLETE, metrics

    def state_dict(self) -> dict[str, torch.Tensor]:
        """The manager's network."""
        return {} if self.policy is None else dict(self.policy.state_dict())

    def snapshot(self) -> dict[str, Any]:
        """The policy, its learner, and every sub-goal, open ones included."""
        assert self.learner is not None
        assert self.decisions is not None
        assert self.world is not None
        return {
            "weights": {name: x.detach().clone() for name, x in self.state_dict().items()},
            "learner": self.learner.state(),
            "decisions": self.decisions.state(),
            "world": self.world.state(),
            "steps_taken": self.steps_taken,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from there, with what the first tick has built; all sub-goals anew where the world cannot be put back."""
        assert self.policy is not None
        assert self.learner is not None
        assert self.decisions is not None
        assert self.world is not None
        load_weights(self.policy, saved["weights"])
        self.learner.set_state(saved["learner"])
        self.decisions.set_state(saved["decisions"])
        self.steps_taken = int(saved["steps_taken"])
        self.world.set_state(saved["world"])
        if self.world.inexact is not None:
            for stream in range(self.world.num_envs):
                self.decisions.episodes.forget(stream)
            self.decisions.reset_tape()
            self.world.begin()


class SubGoalNode(RuntimeNode):
    """The world as a worker sees it; where the manager has learned, all sub-goals are set anew."""

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
            assert first is not None
            goal = self._goal(sim_handle)
            self.world = manager.bind(sim_handle, goal, progress=self.params.progress, env_share=self.params.env_share)
            self.world.view = View(obs=first)
            return self.world, self.world.begin().obs
        if renew is not None:
            assert manager.decisions is not None
            manager.decisions.reset_tape()
            return self.world, self.world.begin().obs
        assert observations is not None
        return self.world, observations

    @property
    def seen(self) -> Arrays:
        """What the worker sees now."""
        assert self.world is not None
        assert self.world.view is not None
        return shown(self.world.view)

    def snapshot(self) -> dict[str, Any]:
        """Nothing: sub-goals are the manager's, who keeps them."""
        return {}

    def restore(self, saved: dict[str, Any]) -> None:
        """As the manager left it."""

    def _goal(self, world: World) -> GoalSpec:
        if self.params.goals == "offsets":
            columns = [each - 1 for each in self.params.coordinates]

            def place(obs: Arrays) -> np.ndarray:
                return obs["obs"][:, columns]

            return offsets(len(columns), self.params.reach, place, near=self.params.near)
        maze: Any = getattr(world, "task", None)
        if not all(hasattr(maze, name) for name in ("landmarks", "where", "nearby")):
            raise ConfigError(
                f'{world.name} has no rooms; goals="rooms" needs a maze such as surefoot/LongMaze-v0, or use offsets'
            )
        return landmarks(maze.landmarks, lambda obs: maze.where(obs["obs"]), near=self.params.near, among=maze.nearby)
