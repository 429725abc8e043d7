"""The trainer: collects the ticks of a rollout and updates with the library's learner; curiosity and schedules for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from surefoot.data.rollout import Rollout
from surefoot.envs.api import Arrays
from surefoot.errors import ConfigError
from surefoot.graph.runtime.base import COMPLETE, RuntimeNode, built, checkpoint_parts
from surefoot.learn.config import PPOConfig
from surefoot.learn.learner import Learner
from surefoot.learn.report import UpdateReport
from surefoot.learn.schedule import Cosine, Linear, Schedule
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.policy import Policy
from surefoot.train.algorithms.curiosity import Curiosity
from surefoot.train.collect.episodes import Episode
from surefoot.train.collect.kernel_rollout import KernelActor
from surefoot.train.collect.tick_collector import ActionRecord, Ticks
from surefoot.train.config import CollectConfig

Outputs = tuple[str | None, dict[str, Any] | None, list[Episode] | None, "PPOTrainerNode | None"]


class PPOTrainerNode(RuntimeNode):
    """PPO over `rollout_steps` ticks; its outputs have values only in the tick of an update."""

    def setup(self) -> None:
        schedule = {} if self.params.lr_schedule is None else {"lr": self.params.lr_schedule}
        self.config = self.settings(PPOConfig, seed=self.seed, device="cpu", path=self.path, **schedule)
        self.normalize_rewards: bool = self.params.normalize_reward
        # The learner is built in the first tick, which brings the network.
        self.learner: Learner | None = None
        self.ticks: Ticks | None = None
        self.curiosity: Curiosity | None = None
        self.rollout: Rollout | None = None
        """The last rollout, for a person who asks where an advantage comes from."""
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
            copies = len(next(iter(policy_outputs.obs.values())))
            for name, x in (
                ("rewards", rewards),
                ("dones", dones),
                ("terminated", terminated),
                ("truncated", truncated),
            ):
                if x is not None and np.shape(x) != (copies,):
                    raise ConfigError(f"{name} has the shape {list(np.shape(x))}; the policy acted in {copies} copies")
            self.begin(built(model), copies, policy_outputs.obs, curiosity, schedule)
        ticks, learner = built(self.ticks), built(self.learner)
        if not _are_equal(states, policy_outputs.obs):
            raise ConfigError(
                "states differs from what the policy acted on, so the probability ratios would be wrong; connect states to the "
                "output that the agent's observations are connected to"
            )
        # With dones alone every end counts as a termination; the check warns about it.
        if truncated is None:
            truncated = np.zeros(len(rewards), bool)
        if terminated is None:
            terminated = built(dones) & ~truncated
        ticks.add(policy_outputs, rewards, terminated, truncated, after=next_states, valid=valid, stats=info)
        if not ticks.full:
            return None, None, None, None
        rollout = ticks.rollout(learner.policy_version)
        if self.curiosity is not None:
            last = ticks.after or {name: x[-1] for name, x in rollout.obs.items()}
            rollout = self.curiosity.add_bonus(rollout, last, progress=self._progress(), updates=learner.updates)
        return self.learn(rollout, policy_outputs.actor)

    def learn(self, rollout: Rollout, actor: KernelActor | None) -> Outputs:
        """Update with a rollout that `ticks` has counted, and return the outputs of the node."""
        self.rollout = rollout
        report = built(self.learner).update(rollout, progress=self._progress())
        if actor is not None:
            # The kernel acts on a packed copy of the weights.
            actor.require()
        return self.outputs(report)

    def _progress(self) -> float:
        """Return the progress at the start of the rollout, as in the library's loop: schedules begin at 0."""
        ticks = built(self.ticks)
        return min(1.0, (ticks.env_steps - ticks.steps * ticks.streams) / self.total_steps)

    def begin(self, policy: Policy, streams: int, obs: Arrays, curiosity: Any = None, schedule: Any = None) -> None:
        """Build the learner for a network; called in the first tick."""
        config = self.config.replace(envs=streams, **({} if schedule is None else {"lr": schedule}))
        self.learner = Learner(policy, config, total_updates=max(1, -(-self.total_steps // config.batch_size)))
        self.ticks = Ticks(
            policy, streams, steps=config.rollout_steps, gamma=config.gamma, scale_rewards=self.normalize_rewards
        )
        if curiosity is not None:
            self.curiosity = curiosity.build(policy, streams, gamma=config.gamma)

    def outputs(self, report: UpdateReport) -> Outputs:
        """Return the outputs of the node after an update."""
        ticks = built(self.ticks)
        self.report, self.updates = report, report.update
        fresh = ticks.episodes.take_fresh()
        mean_return, mean_length, *_ = ticks.episodes.recent()
        metrics = {"update": report.update, "env_steps": ticks.env_steps, **report.metrics(), **report.stats}
        if mean_return is not None:
            metrics |= {"return": mean_return, "length": mean_length}
        return COMPLETE, metrics, fresh, self

    @property
    def env_steps(self) -> int:
        """Steps collected so far."""
        return 0 if self.ticks is None else self.ticks.env_steps

    def snapshot(self) -> dict[str, Any]:
        curiosity = {} if self.curiosity is None else self.curiosity.state()
        ticks = built(self.ticks).state()
        return {**built(self.learner).state(), "ticks": ticks, "curiosity": curiosity, "updates": self.updates}

    def restore(self, saved: dict[str, Any]) -> None:
        built(self.learner).set_state({"optimizer": saved["optimizer"], "learner": saved["learner"]})
        built(self.ticks).set_state(saved["ticks"])
        if self.curiosity is not None:
            self.curiosity.set_state(saved["curiosity"])
        self.updates = int(saved["updates"])

    def begin_anew(self) -> None:
        """Drop unfinished episodes, after environments could not be restored."""
        built(self.ticks).begin_anew()

    def state(self) -> dict[str, Any]:
        """Return the parts of a checkpoint."""
        learner = built(self.learner)
        return {**checkpoint_parts(learner), "policy": learner.policy.describe()}


def _are_equal(states: Arrays, acted_on: Arrays) -> bool:
    """Return whether the observations have the same numbers; usually they are the same arrays, which costs nothing."""
    for name, x in acted_on.items():
        y = states.get(name)
        if y is not x and (y is None or y.size != x.size or not np.array_equal(y.reshape(x.shape), x)):
            return False
    return True


class RNDCuriosityNode(RuntimeNode):
    """A curiosity module; the trainer builds its networks and saves them with its own state."""

    def __call__(self) -> RNDCuriosityNode:
        return self

    def build(self, policy: Any, streams: int, *, gamma: float) -> Curiosity:
        """Return the networks for a policy's spaces."""
        if not isinstance(policy, ActorCritic):
            raise ConfigError("curiosity needs to know the spaces of the policy; use PPOAgentNode as the agent")
        config = self.settings(CollectConfig, curiosity=self.params.kind)
        return Curiosity(config, policy.observation, policy.action, streams=streams, gamma=gamma, seed=self.seed)


class ScheduleNode(RuntimeNode):
    """A schedule as a value."""

    def __call__(self) -> float | Schedule:
        kind, start, end = self.params.kind, self.params.start, self.params.end
        return start if kind == "constant" else (Linear if kind == "linear" else Cosine)(start, end)
