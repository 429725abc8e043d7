"""Two policies, one above the other: a manager sets sub-goals, a worker is paid for reaching them. Both are plain PPO.

A manager's step lasts τ ≤ `every` steps of the world: a step of a semi-MDP (Sutton, Precup and Singh 1999),

    R = Σ_{i<τ} γ^i r_i        δ = R + γ^τ V(s_τ) - V(s_0)

The learner knows one discount only. It is given γ^every, and each `next_value` times γ^(τ - every), so that every δ is
that of the formula, whatever τ is. What the recursion hands on is λ γ^every A rather than λ γ^τ A: a λ that is a little
smaller after a short step, which any GAE may have.

Sub-goals that are open when a rollout ends are closed there and set anew by the policy of the next. So no decision is
ever older than its policy, and between two updates nothing is open that a checkpoint would have to hold.
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
from surefoot.learn.config import PPOConfig
from surefoot.learn.learner import Learner
from surefoot.learn.report import UpdateReport
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.nets.policy import PolicyInput, load_weights
from surefoot.train.collect.collector import Collector
from surefoot.train.collect.episodes import EpisodeLog
from surefoot.train.evaluate import EVAL_SEED_OFFSET, LONGEST_EPISODE, Played

EVAL_STREAMS = 10
_PER_STREAM = ("count", "start", "gain", "age")


@dataclass(frozen=True, slots=True, kw_only=True)
class HierarchySpec:
    """How two policies are trained on top of each other."""

    total_steps: int
    """Steps of the world."""
    every: int = 16
    """Most steps that one sub-goal may take."""
    worker: PPOConfig
    """`steps`, `envs`, `gamma` and `seed` are those of the whole: steps are the world's."""
    manager: PPOConfig = field(default_factory=PPOConfig)
    """Its `steps` and `envs` follow from the worker's, its `gamma` is the worker's to the power of `every`."""
    worker_net: NetConfig = field(default_factory=NetConfig)
    manager_net: NetConfig = field(default_factory=NetConfig)
    progress: float = 0.0
    """What the worker is paid for one scaled unit of distance that it gains; 0 pays for reaching the sub-goal alone."""
    env_share: float = 0.0
    """Share of the world's own reward that the worker gets too."""

    def __post_init__(self) -> None:
        if self.total_steps < 1 or self.every < 1:
            raise ConfigError(f"total_steps is {self.total_steps} and every is {self.every}; both must be at least 1")
        if not 0.0 < self.worker.gamma <= 1.0:
            raise ConfigError(f"the worker's gamma is {self.worker.gamma}; a manager's steps need one above 0")

    @property
    def total_updates(self) -> int:
        """How many updates `total_steps` makes, the last one perhaps a little over."""
        return -(-self.total_steps // self.worker.batch_size)


@dataclass(frozen=True, slots=True, kw_only=True)
class HierarchyReport:
    """What one update of both came to."""

    worker: UpdateReport
    manager: UpdateReport
    decisions: int
    """Sub-goals that were set and followed for at least one step."""
    reached: float
    """Share of them that were reached."""
    mean_steps: float
    """That a sub-goal lasted."""


class Decisions:
    """A manager at work in N streams: what it has decided, what came of it, and the rollout that makes."""

    def __init__(self, policy: ActorCritic, streams: int, *, steps: int, every: int, gamma: float, seed: int) -> None:
        self.policy, self.every, self.gamma = policy, every, gamma
        self.generator = torch.Generator().manual_seed(seed_for("act-manager", seed))
        self.deterministic = False
        self.episodes = EpisodeLog(streams)
        """Of the world itself, raw."""
        self._shape = (steps, streams)
        self._gain, self._age = np.zeros(streams), np.zeros(streams, np.int64)
        self._open: Arrays = {}
        """What was seen and chosen where a sub-goal is open, [N, …]."""
        self.reset_tape()

    def reset_tape(self) -> None:
        """Forget what is finished."""
        self._builder = builder = RolloutBuilder(*self._shape)
        for name in ("reward", "next_value"):
            builder.allocate(name, np.float32)
        for name in ("terminated", "truncated", "start"):
            builder.allocate(name, np.bool_)
        self._count = np.zeros(self._shape[1], np.int64)
        self._start = np.ones(self._shape[1], bool)
        self.steps_taken = 0

    def first(self, obs: Arrays, allowed: np.ndarray | None) -> np.ndarray:
        """A choice for every stream; what is open is forgotten."""
        decision, choice = self._decide(obs, allowed)
        self._open = {name: x.copy() for name, x in decision.items()}
        self._gain[:], self._age[:] = 0.0, 0
        return choice

    def step(self, step: Step, over: np.ndarray, allowed: np.ndarray | None) -> np.ndarray:
        """Count a step of the world; a choice where the sub-goal is over."""
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
            assert step.final_obs is not None, "an episode was cut short without its last observation"
            ahead[cut] = self._value({name: x[streams[cut]] for name, x in step.final_obs.items()})
        self._close(streams, ahead, step.terminated[streams], cut)
        for name, x in decision.items():
            self._open[name][streams] = x
        self._gain[streams], self._age[streams] = 0.0, 0
        return choice

    def rollout(self, view: View, policy_version: int) -> Rollout:
        """All that was decided since the last `reset_tape`, the open sub-goals closed where they are."""
        ahead = self._value({name: x for name, x in view.obs.items() if name in self.policy.observation})
        streams = np.flatnonzero(self._age > 0)
        never = np.zeros(len(streams), bool)
        self._close(streams, ahead[streams], never, never)
        rows = int(self._count.max())
        return self._builder.build(policy_version, steps=rows, valid=np.arange(rows)[:, None] < self._count)

    def state(self) -> dict[str, Any]:
        """Everything that moves but the policy, decisions that are open among it."""
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
        """Write down the open decisions of some streams; `ahead` is what their successors are worth."""
        rows = self._count[streams]
        stretch = self.gamma ** (self._age[streams] - self.every)
        closed = {
            **{name: x[streams] for name, x in self._open.items()},
            "reward": self._gain[streams],
            "next_value": ahead * stretch,
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
        """What is seen, chosen and thought of it, [n, …]; and the choices as the goal takes them."""
        mask = None if allowed is None else torch.from_numpy(allowed)
        inputs = PolicyInput(obs={name: torch.from_numpy(x) for name, x in obs.items()}, action_mask=mask)
        out = self.policy.act(inputs, generator=self.generator, deterministic=self.deterministic)
        action = out.action.numpy()
        decision = {f"obs.{name}": x for name, x in obs.items()}
        decision |= {"action": action, "log_prob": out.log_prob.numpy(), "value": out.value.numpy()}
        return decision | ({} if allowed is None else {"action_mask": allowed}), self.policy.env_action(action)

    @torch.no_grad()
    def _value(self, obs: Arrays) -> np.ndarray:
        return self.policy.value(PolicyInput(obs={name: torch.from_numpy(x) for name, x in obs.items()})).numpy()


def _saved(name: str) -> str:
    """The name of an array in checkpoints, which say "mask" for action_mask."""
    return "mask" if name == "action_mask" else name


def _field(name: str) -> str:
    return "action_mask" if name == "mask" else name


class Hierarchy:
    """One run of two policies in memory. `update` makes one rollout and both learn from it; `state` is all that moves.

    `make` makes the world for a number of streams. Iterating gives a report per update until the steps are done.
    """

    def __init__(self, make: Callable[[int], World], goal: GoalSpec, spec: HierarchySpec) -> None:
        self.make, self.goal, self.spec = make, goal, spec
        config, seed = spec.worker, spec.worker.seed
        base = make(config.envs)
        self.manager = ActorCritic(base.observation, goal.space, spec.manager_net, seed=seed_for("manager", seed))
        self.decisions = self._decisions(config.envs)
        self.world = self._over(base, self.decisions)
        self.worker = ActorCritic(self.world.observation, base.action, spec.worker_net, seed=seed)
        self.worker_learner = Learner(self.worker, config, total_updates=spec.total_updates)
        manages = spec.manager.replace(gamma=config.gamma**spec.every, seed=seed_for("manager", seed))
        self.manager_learner = Learner(self.manager, manages, total_updates=spec.total_updates)
        self.collector = Collector(
            self.world, self.worker, steps=config.rollout_steps, gamma=config.gamma, seed=seed, path=config.path
        )

    @property
    def env_steps(self) -> int:
        """Steps of the world so far."""
        return self.collector.env_steps

    @property
    def finished(self) -> bool:
        """Whether the spec's steps are done."""
        return self.env_steps >= self.spec.total_steps

    @property
    def episodes(self) -> EpisodeLog:
        """The world's own, with its raw rewards; `collector.episodes` are the worker's, one a sub-goal."""
        return self.decisions.episodes

    def update(self) -> HierarchyReport:
        """New sub-goals for all, one rollout, and both learn from it."""
        progress = min(1.0, self.env_steps / self.spec.total_steps)
        collector, decisions = self.collector, self.decisions
        decisions.reset_tape()
        collector.view, collector.start = self.world.begin(), np.ones(self.world.num_envs, bool)
        for stream in range(self.world.num_envs):
            collector.episodes.forget(stream)  # its sub-goal was taken back with the last rollout
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
        """Play whole episodes of the world, both policies as they are; each stream plays its share."""
        if episodes < 1:
            raise ConfigError(f"episodes is {episodes}; at least one must be played")
        streams = min(episodes, EVAL_STREAMS)
        decisions = self._decisions(streams)
        decisions.deterministic = deterministic
        world = self._over(self.make(streams), decisions)
        seed = self.spec.worker.seed + EVAL_SEED_OFFSET if seed is None else seed
        generator = torch.Generator().manual_seed(seed_for("play", seed))
        view, played = world.reset(seed), Played([], [], [])
        quota = np.full(streams, episodes // streams) + (np.arange(streams) < episodes % streams)
        while quota.any():
            mask = None if view.action_mask is None else torch.from_numpy(view.action_mask)
            inputs = PolicyInput(obs={name: torch.from_numpy(x) for name, x in view.obs.items()}, action_mask=mask)
            out = self.worker.act(inputs, generator=generator, deterministic=deterministic)
            decisions.reset_tape()
            view = world.step(self.worker.env_action(out.action.numpy())).view
            for episode in decisions.episodes.take_fresh():
                if quota[episode.stream]:
                    quota[episode.stream] -= 1
                    played.returns.append(episode.return_)
                    played.lengths.append(episode.length)
                    played.successes.append(None if episode.success is None else bool(episode.success))
            if decisions.episodes.lengths.max() >= LONGEST_EPISODE:
                raise ConfigError(f"{world.name} did not end an episode within {LONGEST_EPISODE:,} steps")
        world.close()
        return played

    def state(self) -> dict[str, Any]:
        """The parts of a checkpoint, for `save_checkpoint`."""
        both = {"worker": self.worker, "manager": self.manager}
        return {
            "weights": {
                f"{who}.{n}": x.detach().clone() for who, net in both.items() for n, x in net.state_dict().items()
            },
            "worker": self.worker_learner.state(),
            "manager": self.manager_learner.state(),
            "collector": self.collector.state(),
            "decisions": {"generator": self.decisions.generator.get_state(), "episodes": self.episodes.state()},
        }

    def set_state(self, parts: dict[str, Any]) -> None:
        """Continue from a checkpoint's parts."""
        for who, net in (("worker", self.worker), ("manager", self.manager)):
            weights = {n.removeprefix(f"{who}."): x for n, x in parts["weights"].items() if n.startswith(f"{who}.")}
            load_weights(net, weights)
        self.worker_learner.set_state(parts["worker"])
        self.manager_learner.set_state(parts["manager"])
        self.collector.set_state(parts["collector"])
        self.decisions.generator.set_state(torch.as_tensor(parts["decisions"]["generator"]))
        self.episodes.set_state(parts["decisions"]["episodes"])

    def close(self) -> None:
        """Free the world."""
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

    def _over(self, base: World, decisions: Decisions) -> GoalWorld:
        spec = self.spec
        return GoalWorld(base, self.goal, decisions, every=spec.every, progress=spec.progress, env_share=spec.env_share)
