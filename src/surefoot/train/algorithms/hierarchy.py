"""Hierarchical training: a manager policy sets sub-goals, a worker policy is rewarded for reaching them. Both use PPO.

A manager's step lasts τ ≤ `every` env steps: a step of a semi-MDP (Sutton, Precup and Singh 1999),

    R = Σ_{i<τ} γ^i r_i        δ = R + γ^τ V(s_τ) - V(s_0)

The learner has a single discount, γ^every. Each `next_value` is multiplied by γ^(τ - every), so that every δ equals the
formula for any τ. GAE's recursion uses λ γ^every A instead of λ γ^τ A, which is a slightly smaller λ after a short step.

Sub-goals that are open at the end of a rollout are closed, and the next rollout begins with new ones. So every decision is
made by the current policy, and a checkpoint between two updates contains no open decisions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from surefoot.data.rollout import Rollout
from surefoot.data.rollout_builder import RolloutBuilder
from surefoot.data.seeds import seed_for
from surefoot.envs.api import Arrays, Step, View, World
from surefoot.envs.goals import GoalSpec, GoalWorld
from surefoot.errors import ConfigError
from surefoot.learn.checkpoint.typed_state import restoring
from surefoot.learn.config import PPOConfig
from surefoot.learn.learner import Learner
from surefoot.learn.report import UpdateReport
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.nets.policy import PolicyInput, load_weights
from surefoot.train.collect.collector import Collector
from surefoot.train.collect.episodes import EpisodeLog
from surefoot.train.evaluate import EVAL_SEED_OFFSET, Played, episodes_per_stream, refuse_endless

# Episodes that are played in parallel in an evaluation. More need fewer policy calls but step longer after the first finish.
EVAL_STREAMS = 10
# Arrays of `Decisions` with one entry per stream, as they are named in its state.
_PER_STREAM = ("count", "start", "gain", "age")


@dataclass(frozen=True, slots=True, kw_only=True)
class HierarchySpec:
    """Settings of hierarchical training."""

    total_steps: int
    """Env steps to train for."""
    every: int = 16
    """Maximum number of env steps of one sub-goal."""
    worker: PPOConfig
    """PPO settings of the worker. Its `envs`, `gamma` and `seed` apply to the hierarchy; `rollout_steps` are env steps."""
    manager: PPOConfig = field(default_factory=PPOConfig)
    """PPO settings of the manager. `rollout_steps` and `envs` follow from the worker's; `gamma` is its `gamma ** every`."""
    worker_net: NetConfig = field(default_factory=NetConfig)
    manager_net: NetConfig = field(default_factory=NetConfig)
    progress: float = 0.0
    """Reward of the worker per scaled unit of distance towards the sub-goal; 0 rewards only reaching it."""
    env_share: float = 0.0
    """Share of the env's reward that is added to the worker's."""

    def __post_init__(self) -> None:
        if self.total_steps < 1 or self.every < 1:
            raise ConfigError(f"total_steps is {self.total_steps} and every is {self.every}; both must be at least 1")
        # 0 is refused too: next values are divided by powers of gamma.
        if not 0.0 < self.worker.gamma <= 1.0:
            raise ConfigError(f"the worker's gamma is {self.worker.gamma}; it must be above 0 and at most 1")

    @property
    def total_updates(self) -> int:
        """Number of updates for `total_steps`, rounded up."""
        return -(-self.total_steps // self.worker.batch_size)


@dataclass(frozen=True, slots=True, kw_only=True)
class HierarchyReport:
    """Results of one update of both policies."""

    worker: UpdateReport
    manager: UpdateReport
    decisions: int
    """Sub-goals that were followed for at least one step."""
    reached: float
    """Share of them that were reached."""
    mean_steps: float
    """Mean number of env steps per sub-goal."""


class Decisions:
    """The manager's decisions in N streams, their results, and the rollout made of them."""

    def __init__(self, policy: ActorCritic, streams: int, *, steps: int, every: int, gamma: float, seed: int) -> None:
        self.policy, self.every, self.gamma = policy, every, gamma
        self.generator = torch.Generator().manual_seed(seed_for("act-manager", seed))
        self.deterministic = False
        self.episodes = EpisodeLog(streams)
        """Episodes of the env, with its raw rewards."""
        self._shape = (steps, streams)
        self._gain, self._age = np.zeros(streams), np.zeros(streams, np.int64)
        self._open: Arrays = {}
        """Observation, action, log-prob and value of the open decision of each stream, [N, …]."""
        self.reset_tape()

    def reset_tape(self) -> None:
        self._builder = builder = RolloutBuilder(*self._shape)
        for name in ("reward", "next_value"):
            builder.allocate(name, np.float32)
        for name in ("terminated", "truncated", "start"):
            builder.allocate(name, np.bool_)
        self._count = np.zeros(self._shape[1], np.int64)
        self._start = np.ones(self._shape[1], bool)
        self.steps_taken = 0

    def first(self, obs: Arrays, allowed: np.ndarray | None) -> np.ndarray:
        """Return a choice for every stream, and discard the open decisions."""
        decision, choice = self._decide(obs, allowed)
        self._open = {name: x.copy() for name, x in decision.items()}
        self._gain[:], self._age[:] = 0.0, 0
        return choice

    def step(self, step: Step, over: np.ndarray, allowed: np.ndarray | None) -> np.ndarray:
        """Add an env step, and return a choice for each stream whose sub-goal is `over`."""
        ended = step.terminated | step.truncated
        self.episodes.count(step)
        if ended.any():
            self.episodes.finish(step, ended)
        self._gain += self.gamma**self._age * step.reward
        self._age += 1
        streams = np.flatnonzero(over)
        if not len(streams):
            return np.zeros(0)
        decision, choice = self._decide({name: x[streams] for name, x in step.view.obs.items()}, allowed)
        ahead = decision["value"].copy()
        cut = step.truncated[streams]
        if cut.any() and not self.deterministic:
            # `decision` was made in the next episode; a truncated step is bootstrapped with the episode's last observation.
            assert step.final_obs is not None, "an episode was truncated without its final observation"
            ahead[cut] = self._value({name: x[streams[cut]] for name, x in step.final_obs.items()})
        self._close(streams, ahead, step.terminated[streams], cut)
        for name, x in decision.items():
            self._open[name][streams] = x
        self._gain[streams], self._age[streams] = 0.0, 0
        return choice

    def rollout(self, view: View, policy_version: int) -> Rollout:
        """Return the decisions since the last `reset_tape` as a rollout; open sub-goals are closed at the current step."""
        ahead = self._value({name: x for name, x in view.obs.items() if name in self.policy.observation})
        # Age 0: chosen after the last step and never followed, so there is nothing to learn from it.
        streams = np.flatnonzero(self._age > 0)
        never = np.zeros(len(streams), bool)
        self._close(streams, ahead[streams], never, never)
        # Streams have different numbers of decisions; `valid` masks the rows after the last of each.
        rows = int(self._count.max())
        return self._builder.build(policy_version, steps=rows, valid=np.arange(rows)[:, None] < self._count)

    def state(self) -> dict[str, Any]:
        """Return everything that changes except the policy, including open decisions."""
        return {
            "generator": self.generator.get_state(),
            "episodes": self.episodes.state(),
            "tape": {_saved(name): x.copy() for name, x in self._builder.arrays.items()},
            "open": {_saved(name): x.copy() for name, x in self._open.items()},
            "streams": {name: getattr(self, f"_{name}").copy() for name in _PER_STREAM},
            "steps_taken": self.steps_taken,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""
        self.generator.set_state(torch.as_tensor(state["generator"]))
        self.episodes.set_state(state["episodes"])
        self._builder.arrays = {_field(name): np.array(x) for name, x in state["tape"].items()}
        self._open = {_field(name): np.array(x) for name, x in state["open"].items()}
        for name in _PER_STREAM:
            setattr(self, f"_{name}", np.array(state["streams"][name]))
        self.steps_taken = int(state["steps_taken"])

    def _close(self, streams: np.ndarray, ahead: np.ndarray, terminated: np.ndarray, truncated: np.ndarray) -> None:
        """Add the open decisions of `streams` to the rollout; `ahead` is the value of their successors."""
        rows = self._count[streams]
        # The learner multiplies by γ^every; this factor turns it into γ^τ (see the module's docstring).
        correction = self.gamma ** (self._age[streams] - self.every)
        closed = {
            **{name: x[streams] for name, x in self._open.items()},
            "reward": self._gain[streams],
            "next_value": ahead * correction,
            "terminated": terminated,
            "truncated": truncated,
            "start": self._start[streams],
        }
        self._builder.write((rows, streams), 1, closed)
        self._start[streams] = terminated | truncated
        self._count[streams] += 1
        self.steps_taken += int(self._age[streams].sum())

    @torch.no_grad()
    def _decide(self, obs: Arrays, allowed: np.ndarray | None) -> tuple[Arrays, np.ndarray]:
        """Return observation, action, log-prob and value, [n, …], and the choices in the form that the goal takes."""
        inputs = PolicyInput.from_arrays(obs, allowed)
        out = self.policy.act(inputs, generator=self.generator, deterministic=self.deterministic)
        action = out.action.numpy()
        decision = {f"obs.{name}": x for name, x in obs.items()}
        decision |= {"action": action, "log_prob": out.log_prob.numpy(), "value": out.value.numpy()}
        return decision | ({} if allowed is None else {"action_mask": allowed}), self.policy.env_action(action)

    @torch.no_grad()
    def _value(self, obs: Arrays) -> np.ndarray:
        return self.policy.value(PolicyInput.from_arrays(obs)).numpy()


def _saved(name: str) -> str:
    """Return the name of an array in checkpoints, where action_mask is called "mask"."""
    return "mask" if name == "action_mask" else name


def _field(name: str) -> str:
    return "action_mask" if name == "mask" else name


class Hierarchy:
    """Hierarchical training in memory. `update` collects one rollout and trains both policies; iterate for all updates.

    Args:
        make: Makes the environment for a number of streams.
        goal: The space of sub-goals and the distance to them.
        spec: Settings of the training.
    """

    def __init__(self, make: Callable[[int], World], goal: GoalSpec, spec: HierarchySpec) -> None:
        self.make, self.goal, self.spec = make, goal, spec
        config, seed = spec.worker, spec.worker.seed
        base = make(config.envs)
        self.manager = ActorCritic(base.observation, goal.space, spec.manager_net, seed=seed_for("manager", seed))
        self.decisions = self._decisions(config.envs)
        self.world = self._goal_world(base, self.decisions)
        self.worker = ActorCritic(self.world.observation, base.action, spec.worker_net, seed=seed)
        self.worker_learner = Learner(self.worker, config, total_updates=spec.total_updates)
        manager_config = spec.manager.replace(gamma=config.gamma**spec.every, seed=seed_for("manager", seed))
        self.manager_learner = Learner(self.manager, manager_config, total_updates=spec.total_updates)
        self.collector = Collector(
            self.world, self.worker, steps=config.rollout_steps, gamma=config.gamma, seed=seed, path=config.path
        )

    @property
    def env_steps(self) -> int:
        return self.collector.env_steps

    @property
    def finished(self) -> bool:
        """Whether `total_steps` are done."""
        return self.env_steps >= self.spec.total_steps

    @property
    def episodes(self) -> EpisodeLog:
        """Episodes of the env, with its raw rewards; `collector.episodes` has one entry per sub-goal."""
        return self.decisions.episodes

    def update(self) -> HierarchyReport:
        """Set new sub-goals in all streams, collect one rollout and train both policies on it."""
        progress = min(1.0, self.env_steps / self.spec.total_steps)
        collector, decisions = self.collector, self.decisions
        decisions.reset_tape()
        collector.view, collector.start = self.world.begin(), np.ones(self.world.num_envs, bool)
        for stream in range(self.world.num_envs):
            # The sub-goal that was open at the end of the last rollout has been closed there.
            collector.episodes.forget(stream)
        rollout = collector.collect(self.worker_learner.policy_version)
        reached = [episode.success for episode in collector.episodes.take_fresh()]
        managed = decisions.rollout(collector.view, self.manager_learner.policy_version)
        worker = self.worker_learner.update(rollout, progress=progress)
        worker.seconds.update(collector.seconds)
        manager = self.manager_learner.update(managed, progress=progress)
        return HierarchyReport(
            worker=worker,
            manager=manager,
            decisions=managed.samples,
            reached=sum(x or 0.0 for x in reached) / max(1, managed.samples),
            mean_steps=decisions.steps_taken / max(1, managed.samples),
        )

    def __iter__(self) -> Hierarchy:
        return self

    def __next__(self) -> HierarchyReport:
        if self.finished:
            raise StopIteration
        return self.update()

    @torch.no_grad()
    def evaluate(self, episodes: int = 100, *, seed: int | None = None, deterministic: bool = False) -> Played:
        """Play complete episodes with the current policies and return their results.

        Args:
            episodes: Number of episodes.
            seed: Seed of the env and the actions; None derives one from the run's seed.
            deterministic: Take the most likely actions instead of sampling.
        """
        if episodes < 1:
            raise ConfigError(f"episodes is {episodes}; it must be at least 1")
        streams = min(episodes, EVAL_STREAMS)
        decisions = self._decisions(streams)
        decisions.deterministic = deterministic
        world = self._goal_world(self.make(streams), decisions)
        seed = self.spec.worker.seed + EVAL_SEED_OFFSET if seed is None else seed
        generator = torch.Generator().manual_seed(seed_for("play", seed))
        view, played = world.reset(seed), Played([], [], [])
        quota = episodes_per_stream(episodes, streams)
        while quota.any():
            inputs = PolicyInput.from_arrays(view.obs, view.action_mask)
            out = self.worker.act(inputs, generator=generator, deterministic=deterministic)
            # Nothing is learned here, and the rollout has no room for more than `rollout_steps`.
            decisions.reset_tape()
            view = world.step(self.worker.env_action(out.action.numpy())).view
            for episode in decisions.episodes.take_fresh():
                if quota[episode.stream]:
                    quota[episode.stream] -= 1
                    played.add(episode.return_, episode.length, episode.success)
            refuse_endless(world, decisions.episodes.lengths)
        world.close()
        return played

    def state(self) -> dict[str, Any]:
        """Return the parts of a checkpoint, for `save_checkpoint`."""
        policies = {"worker": self.worker, "manager": self.manager}
        return {
            "weights": {
                f"{role}.{n}": x.detach().clone() for role, net in policies.items() for n, x in net.state_dict().items()
            },
            "worker": self.worker_learner.state(),
            "manager": self.manager_learner.state(),
            "collector": self.collector.state(),
            "decisions": {"generator": self.decisions.generator.get_state(), "episodes": self.episodes.state()},
        }

    @restoring("hierarchy")
    def set_state(self, parts: dict[str, Any]) -> None:
        for role, net in (("worker", self.worker), ("manager", self.manager)):
            weights = {n.removeprefix(f"{role}."): x for n, x in parts["weights"].items() if n.startswith(f"{role}.")}
            load_weights(net, weights)
        self.worker_learner.set_state(parts["worker"])
        self.manager_learner.set_state(parts["manager"])
        self.collector.set_state(parts["collector"])
        self.decisions.generator.set_state(torch.as_tensor(parts["decisions"]["generator"]))
        self.episodes.set_state(parts["decisions"]["episodes"])

    def close(self) -> None:
        self.world.close()

    def _decisions(self, streams: int) -> Decisions:
        config = self.spec.worker
        return Decisions(
            self.manager,
            streams,
            steps=config.rollout_steps,
            every=self.spec.every,
            gamma=config.gamma,
            seed=config.seed,
        )

    def _goal_world(self, base: World, decisions: Decisions) -> GoalWorld:
        spec = self.spec
        return GoalWorld(base, self.goal, decisions, every=spec.every, progress=spec.progress, env_share=spec.env_share)
