"""The trainer: keeps a rollout's ticks, then hands them to the library's learner."""

from __future__ import annotations

from typing import Any

import numpy as np

from surefoot.envs.api import Arrays
from surefoot.graph.runtime.base import COMPLETE, RuntimeNode, checkpoint_parts
from surefoot.learn.config import PPOConfig
from surefoot.learn.learner import Learner
from surefoot.learn.report import UpdateReport
from surefoot.nets.policy import Policy
from surefoot.train.algorithms.curiosity import Curiosity
from surefoot.train.collect.episodes import Episode
from surefoot.train.collect.tick_collector import ActionRecord, Ticks

Outputs = tuple[str | None, dict[str, Any] | None, list[Episode] | None, "PPOTrainerNode | None"]


class PPOTrainerNode(RuntimeNode):
    """PPO over `horizon_length` ticks. `training_complete` comes with the tick in which an update was made, never before."""

    def setup(self) -> None:
        """Read the config; the learner is built with the first tick, which brings the network."""
        moving = {} if self.params.lr_schedule is None else {"lr": self.params.lr_schedule}
        self.config = self.settings(PPOConfig, seed=self.seed, device="cpu", path=self.path, **moving)
        self.normalize_rewards: bool = self.params.normalize_rewards
        self.learner: Learner | None = None
        self.ticks: Ticks | None = None
        self.curiosity: Curiosity | None = None
        self.updates = 0

    def __call__(
        self,
        states: Arrays,
        policy_outputs: ActionRecord,
        rewards: np.ndarray,
        dones: np.ndarray | None = None,
        model: Policy | None = None,
        terminated: np.ndarray | None = None,
        truncated: np.ndarray | None = None,
        next_states: Arrays | None = None,
        valid: np.ndarray | None = None,
        info: Arrays | None = None,
        curiosity: Any = None,
        schedule: Any = None,
    ) -> Outputs:
        if self.ticks is None:
            assert model is not None
            self.begin(model, len(rewards), policy_outputs.obs, curiosity, schedule)
        assert self.ticks is not None
        if truncated is None:
            truncated = np.zeros(len(rewards), bool)
        if terminated is None:
            assert dones is not None
            terminated = dones & ~truncated
        self.ticks.add(policy_outputs, rewards, terminated, truncated, after=next_states, valid=valid, stats=info)
        if not self.ticks.full:
            return None, None, None, None
        assert self.learner is not None
        progress = min(1.0, (self.ticks.env_steps - self.config.rollout_steps * len(rewards)) / self.total_steps)
        rollout, after = self.ticks.rollout(self.learner.policy_version), self.ticks.after
        if self.curiosity is not None:
            last = after or {name: x[-1] for name, x in rollout.obs.items()}
            rollout = self.curiosity.add_bonus(rollout, last, progress=progress, updates=self.learner.updates)
        report = self.learner.update(rollout, progress=progress)
        if policy_outputs.actor is not None:
            policy_outputs.actor.net.refresh()  # it acts on a packed copy of the weights
        return self.outputs(report)

    def begin(self, policy: Policy, streams: int, obs: Arrays, curiosity: Any = None, schedule: Any = None) -> None:
        """Take up a network: called with the first tick."""
        config = self.config.replace(envs=streams)
        if schedule is not None:
            config = config.replace(lr=schedule)
        self.learner = Learner(policy, config, total_updates=max(1, -(-self.total_steps // config.batch_size)))
        self.ticks = Ticks(
            policy, streams, steps=config.rollout_steps, gamma=config.gamma, scale_rewards=self.normalize_rewards
        )
        if curiosity is not None:
            self.curiosity = curiosity.build(policy, streams, gamma=config.gamma)

    def outputs(self, report: UpdateReport) -> Outputs:
        """What goes out after an update."""
        assert self.ticks is not None
        self.updates = report.update
        fresh = self.ticks.episodes.take_fresh()
        recent = self.ticks.episodes.recent()
        metrics = {"update": report.update, "env_steps": self.ticks.env_steps, **report.metrics(), **report.stats}
        if recent[0] is not None:
            metrics |= {"return": recent[0], "length": recent[1]}
        self.report = report
        return COMPLETE, metrics, fresh, self

    @property
    def env_steps(self) -> int:
        """Steps that were learned from, or will be."""
        return 0 if self.ticks is None else self.ticks.env_steps

    def snapshot(self) -> dict[str, Any]:
        """The learner and the rollout that is being collected."""
        assert self.learner is not None
        assert self.ticks is not None
        curiosity = {} if self.curiosity is None else self.curiosity.state()
        return {**self.learner.state(), "ticks": self.ticks.state(), "curiosity": curiosity, "updates": self.updates}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from there, with the learner that the first tick has built."""
        assert self.learner is not None
        assert self.ticks is not None
        self.learner.set_state({"optimizer": saved["optimizer"], "learner": saved["learner"]})
        self.ticks.set_state(saved["ticks"])
        if self.curiosity is not None:
            self.curiosity.set_state(saved["curiosity"])
        self.updates = int(saved["updates"])

    def begin_anew(self) -> None:
        """Worlds could not be put back."""
        assert self.ticks is not None
        self.ticks.begin_anew()

    def state(self) -> dict[str, Any]:
        """The parts of a checkpoint."""
        assert self.learner is not None
        return {**checkpoint_parts(self.learner), "policy": self.learner.policy.describe()}
