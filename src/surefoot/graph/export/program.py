"""The loop of a program that stands alone: what joins the library's functions and networks to one run.

This is ordinary code, and `standalone` writes its source into the program together with the library definitions that it
uses. It has its own module so that a program holds nothing that it does not need: no kernel, no recovery, no reports.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor, nn

from surefoot.core.batch import Batch, Evaluation
from surefoot.core.divergence import k3
from surefoot.core.losses import LOG_RATIO_LIMIT, ppo_loss
from surefoot.core.masked import masked_mean
from surefoot.core.moments import standardize
from surefoot.data.rollout import Rollout
from surefoot.data.seeds import seed_for
from surefoot.data.spaces import ObservationSpace
from surefoot.envs.api import Arrays, Step, View, World
from surefoot.envs.builtin.streams import Task
from surefoot.envs.goals import GoalWorld
from surefoot.learn.config import split_sizes
from surefoot.learn.optimizer import Optimizer
from surefoot.learn.prepare import to_batch
from surefoot.nets.heads import DiscreteHead, GaussianHead
from surefoot.nets.policy import PolicyOutput, Seen
from surefoot.nets.recurrent import GATES, UNROLL
from surefoot.nets.torsos import Flatten, Parts, layer, mlp
from surefoot.train.algorithms.hierarchy import Decisions
from surefoot.train.collect.episodes import EpisodeLog
from surefoot.train.collect.tick_collector import Chosen, Ticks


class GymCopies:
    """N copies of a Gymnasium environment; a copy that ends begins its next episode in the same step."""

    def __init__(self, env_id: str, num_envs: int) -> None:
        self.envs = [gym.make(env_id, disable_env_checker=True) for _ in range(num_envs)]
        self.name, self.num_envs, self.space = env_id, num_envs, self.envs[0].action_space
        self.dtype = np.uint8 if self.envs[0].observation_space.dtype == np.uint8 else np.float32

    def reset(self, seed: int) -> View:
        """Return the first observations of all copies."""
        return View(obs={"obs": self._stack([env.reset(seed=seed + i)[0] for i, env in enumerate(self.envs)])})

    def step(self, action: np.ndarray) -> Step:
        """Take one action per copy."""
        count = self.num_envs
        actions = np.array(action, self.space.dtype).reshape(count, *(self.space.shape or ()))
        reward, terminated, truncated = np.empty(count), np.zeros(count, bool), np.zeros(count, bool)
        observations: list[Any] = []
        for i, env in enumerate(self.envs):
            seen, reward[i], terminated[i], cut, _ = env.step(actions[i])
            truncated[i] = cut and not terminated[i]
            observations.append(seen)
        final = self._stack(observations)
        obs = final.copy()
        for i in np.flatnonzero(terminated | truncated):
            obs[i] = self.envs[i].reset()[0]
        return Step(
            view=View(obs={"obs": obs}),
            reward=reward,
            terminated=terminated,
            truncated=truncated,
            valid=np.ones(count, bool),
            final_obs={"obs": final},
        )

    def _stack(self, observations: list[Any]) -> np.ndarray:
        return np.stack(observations).astype(self.dtype)


class TaskCopies:
    """N copies of a task that is written in numpy; a copy that ends begins its next episode in the same step."""

    inexact = None

    def __init__(self, task: Task, num_envs: int) -> None:
        self.task, self.name, self.num_envs = task, type(task).__name__, num_envs
        self.observation, self.action = {"obs": task.observation}, task.action
        self.limit = task.max_episode_steps if task.max_episode_steps is not None else 2**62

    def reset(self, seed: int) -> View:
        """Return the first observations of all copies."""
        self.rng = np.random.Generator(np.random.PCG64(seed))
        self.numbers = self.task.start(self.rng, self.num_envs)
        self.age = np.zeros(self.num_envs, np.int64)
        return View(obs={"obs": self.task.observe(self.numbers)})

    def step(self, action: np.ndarray) -> Step:
        """Take one action per copy."""
        self.numbers, reward, terminated = self.task.advance(self.numbers, action, self.rng)
        self.age += 1
        truncated = (self.age >= self.limit) & ~terminated
        final = obs = self.task.observe(self.numbers)
        ended = (terminated | truncated).nonzero()[0]
        if len(ended):
            first = self.task.start(self.rng, len(ended))
            self.numbers[:, ended], self.age[ended] = first, 0
            obs = final.copy()
            obs[ended] = self.task.observe(first)
        return Step(
            view=View(obs={"obs": obs}),
            reward=reward,
            terminated=terminated,
            truncated=truncated,
            valid=np.ones(self.num_envs, bool),
            final_obs={"obs": final},
        )


class SideBySide:
    """Several worlds as one: the rows of the first, then of the second, and so on. Each has its own seed."""

    def __init__(self, *worlds: tuple[Any, int]) -> None:
        self.worlds, self.seeds = [world for world, _ in worlds], [seed for _, seed in worlds]
        self.cuts = np.cumsum([world.num_envs for world in self.worlds])
        self.num_envs = int(self.cuts[-1])

    def reset(self, seed: int) -> View:
        """Return the first observations of all rows; `seed` is not used."""
        views = [world.reset(own) for world, own in zip(self.worlds, self.seeds, strict=True)]
        return View(obs={"obs": np.concatenate([view.obs["obs"] for view in views])})

    def step(self, action: np.ndarray) -> Step:
        """Take one action per row."""
        steps: list[Step] = [
            world.step(part) for world, part in zip(self.worlds, np.split(action, self.cuts[:-1]), strict=True)
        ]
        return Step(
            view=View(obs={"obs": np.concatenate([step.view.obs["obs"] for step in steps])}),
            reward=np.concatenate([step.reward for step in steps]),
            terminated=np.concatenate([step.terminated for step in steps]),
            truncated=np.concatenate([step.truncated for step in steps]),
            valid=np.ones(self.num_envs, bool),
            final_obs={"obs": np.concatenate([(step.final_obs or step.view.obs)["obs"] for step in steps])},
        )


class PolicyNet(nn.Module):
    """An actor and a critic, on one trunk if `net.shared`, between a torso and a head of the library."""

    sequential = False

    def __init__(
        self,
        observation: ObservationSpace,
        torso: Flatten | Parts,
        head: DiscreteHead | GaussianHead,
        net: SimpleNamespace,
    ) -> None:
        super().__init__()
        self.observation, self.torso, self.shared = observation, torso, net.shared
        inputs = self.add_memory(torso.size, net)
        features, ortho = net.hidden[-1] if net.hidden else inputs, net.ortho_init
        self.actor = mlp(inputs, net.hidden, activation=net.activation, ortho_init=ortho)
        self.critic = (
            nn.Sequential() if net.shared else mlp(inputs, net.hidden, activation=net.activation, ortho_init=ortho)
        )
        self.value_out = layer(features, 1, gain=1.0, ortho_init=ortho)
        self.policy_out = layer(features, head.outputs, gain=0.01, ortho_init=ortho)
        self.head = head  # last, as in the library: the norm of the gradient adds up in the order of the parameters

    def add_memory(self, inputs: int, net: SimpleNamespace) -> int:
        """Return the width of what actor and critic read."""
        return inputs

    def initial_context(self, streams: int) -> dict[str, Tensor]:
        """Return what streams remember before their first step."""
        return {}

    def look(
        self, obs: dict[str, Tensor], context: dict[str, Tensor], start: Tensor | None, shape: tuple[int, ...]
    ) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """Return what the actor and the critic read, one row per step, and what the streams remember then."""
        x = self.torso(obs)
        return x, x, context

    def forward(
        self, obs: dict[str, Tensor], context: dict[str, Tensor], start: Tensor | None, shape: tuple[int, ...]
    ) -> tuple[Tensor, Tensor, Tensor, dict[str, Tensor]]:
        """Return the head's input, the value, the actor's features and the context; `obs` has rows for shape [T, B]."""
        x, judged, context = self.look(obs, context, start, shape)
        features = self.actor(x)
        value = self.value_out(features if self.shared else self.critic(judged)).squeeze(-1)
        return self.policy_out(features), value, features, context

    def act(self, seen: Seen, *, generator: torch.Generator, deterministic: bool = False) -> PolicyOutput:
        """Choose one action per stream."""
        start = None if seen.start is None else seen.start.unsqueeze(0)
        streams = len(next(iter(seen.obs.values())))
        raw, value, features, context = self(seen.obs, seen.context, start, (1, streams))
        dist = self.head.distribution(raw, features, seen.action_mask)
        action = dist.mode() if deterministic else dist.sample(generator)
        log_prob = dist.log_prob(action)
        return PolicyOutput(action=action, value=value, log_prob=log_prob, distribution=dist, context=context)

    def value(self, seen: Seen) -> Tensor:
        """Return the expected return of each stream."""
        return self(seen.obs, seen.context, None, (1, len(next(iter(seen.obs.values())))))[1]

    def evaluate(self, batch: Batch) -> Evaluation:
        """Return log-probs, entropies and values of stored steps, each [T, B]."""
        shape = batch.advantage.shape
        obs = {name: part.flatten(0, 1) for name, part in batch.obs.items()}
        raw, value, features, _ = self(obs, batch.context, batch.start, shape)
        mask = None if batch.action_mask is None else batch.action_mask.flatten(0, 1)
        dist = self.head.distribution(raw, features, mask)
        log_prob = dist.log_prob(batch.action.flatten(0, 1))
        return Evaluation(log_prob.view(shape), dist.entropy().view(shape), value.view(shape))

    def env_action(self, action: np.ndarray) -> np.ndarray:
        """Return the actions as the environment takes them."""
        return self.head.env_action(action)

    def absorb(self, obs: Arrays) -> None:
        """Move the observation statistics, if the torso keeps any."""
        self.torso.absorb(obs)


class RecurrentLayer(nn.Module):
    """One recurrent layer; what a stream remembers is passed in and out, never kept."""

    def __init__(self, kind: str, inputs: int, size: int, *, ortho_init: bool) -> None:
        super().__init__()
        self.kind, self.carried = kind, 2 * size if kind == "lstm" else size
        self.inward = layer(inputs, GATES[kind] * size, gain=1.0, ortho_init=ortho_init)
        self.onward = layer(size, GATES[kind] * size, gain=1.0, ortho_init=ortho_init)

    def forward(self, x: Tensor, carry: Tensor, start: Tensor | None) -> tuple[Tensor, Tensor]:
        """[T, B, inputs] → [T, B, size], and what is carried on; where `start` is True an episode begins, with nothing."""
        fresh = None if start is None or not bool(start.any()) else start
        return UNROLL[self.kind](self.inward(x), carry, fresh, self.onward.weight, self.onward.bias)


class RecurrentNet(PolicyNet):
    """The same with a memory in front: one for actor and critic if `net.shared`, else one each."""

    sequential = True

    def add_memory(self, inputs: int, net: SimpleNamespace) -> int:
        """Return the width of the memory."""
        names = ("memory",) if net.shared else ("memory", "critic_memory")
        self.memories = nn.ModuleDict(
            {name: RecurrentLayer(net.memory, inputs, net.memory_size, ortho_init=net.ortho_init) for name in names}
        )
        return net.memory_size

    def initial_context(self, streams: int) -> dict[str, Tensor]:
        """Return empty memories."""
        return {name: torch.zeros(streams, memory.carried) for name, memory in self.memories.items()}

    def look(
        self, obs: dict[str, Tensor], context: dict[str, Tensor], start: Tensor | None, shape: tuple[int, ...]
    ) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """Return what the actor and the critic read, one row per step, and what the streams remember then."""
        x = self.torso(obs).unflatten(0, shape)
        after: dict[str, Tensor] = {}
        rows: list[Tensor] = []
        for name, memory in self.memories.items():
            hidden, after[name] = memory(x, context[name], start)
            rows.append(hidden.flatten(0, 1))
        return rows[0], rows[-1], after


def row_policy(
    observation: ObservationSpace, head: Any, net: SimpleNamespace, seed: int, kind: type[PolicyNet] = PolicyNet
) -> PolicyNet:
    """Return a policy for observations that are rows of numbers."""
    torch.manual_seed(seed_for("weights", seed))
    return kind(observation, Flatten(observation, normalize=net.normalize_obs, clip=net.obs_clip), head, net)


def picture_policy(observation: ObservationSpace, head: Any, net: SimpleNamespace, seed: int) -> PolicyNet:
    """Return a policy for observations that are pictures."""
    torch.manual_seed(seed_for("weights", seed))
    options = {"cnn": "auto", "features": net.cnn_features, "ortho_init": net.ortho_init}
    torso = Parts(observation, **options, normalize=net.normalize_obs, clip=net.obs_clip)
    return PolicyNet(observation, torso, head, net)


class PolicyTrainer:
    """Moves one policy: PPO over a rollout. `knobs(progress)` returns the settings at that share of the run."""

    def __init__(self, policy: PolicyNet, knobs: Callable[[float], Any], seed: int) -> None:
        self.policy, self.knobs = policy, knobs
        self.optimizer = Optimizer(policy.parameters(), knobs(0.0))
        self.generator = torch.Generator().manual_seed(seed_for("shuffle", seed))

    def update(self, rollout: Rollout, progress: float) -> dict[str, float]:
        """Take all epochs of minibatch steps over one rollout, and return the metrics."""
        knobs, policy = self.knobs(progress), self.policy
        batch = to_batch(
            rollout,
            rollout.valid,
            gamma=knobs.gamma,
            lam=knobs.lam,
            sequential=policy.sequential,
            device=torch.device("cpu"),
        )
        if knobs.normalize_advantage == "batch":
            batch.advantage, _ = standardize(batch.advantage, batch.valid)
        # A minibatch is a choice of columns; a recurrent policy keeps its streams whole, so that its columns are long.
        sizes = split_sizes(batch.columns, max(1, knobs.minibatch_size // len(batch.advantage)))
        rows: list[Tensor] = []
        log_ratios: list[Tensor] = []
        for minibatch in self._minibatches(batch, knobs.epochs, sizes):
            advantage = minibatch.advantage
            if knobs.normalize_advantage == "minibatch":
                advantage, _ = standardize(advantage, minibatch.valid)
            losses = ppo_loss(
                policy.evaluate(minibatch),
                minibatch,
                advantage,
                clip=knobs.clip,
                value_clip=knobs.value_clip,
                vf_coef=knobs.vf_coef,
                ent_coef=knobs.ent_coef,
            )
            log_ratio = losses.log_ratio.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
            moved = masked_mean(k3(log_ratio), minibatch.valid)
            if knobs.target_kl is not None and float(moved) > knobs.kl_stop_factor * knobs.target_kl:
                break
            self.optimizer.zero_grad()
            losses.total.backward()
            norm = self.optimizer.clip(knobs.max_grad_norm)
            if not bool(torch.isfinite(norm + losses.total)):
                raise FloatingPointError("loss or gradient is not finite; lower the learning rate or check the rewards")
            self.optimizer.step(knobs.lr)
            rows.append(torch.stack([losses.total, losses.policy, losses.value, losses.entropy, norm]).detach())
            log_ratios.append(log_ratio.flatten())
        policy.absorb({name: x.reshape(-1, *x.shape[2:])[rollout.valid.ravel()] for name, x in rollout.obs.items()})
        metrics: dict[str, float] = {"lr": knobs.lr, "minibatches": len(rows)}
        if rows:
            names = ("loss", "policy_loss", "value_loss", "entropy", "grad_norm")
            moved, outside = torch.cat(log_ratios), torch.cat(log_ratios).expm1().abs() > knobs.clip
            metrics |= dict(zip(names, torch.stack(rows).mean(dim=0).tolist(), strict=True))
            metrics |= {"approx_kl": float(k3(moved).mean()), "clip_fraction": float(outside.float().mean())}
        return metrics

    def _minibatches(self, batch: Batch, epochs: int, sizes: list[int]) -> Any:
        """Yield all columns once per epoch, shuffled."""
        for _ in range(epochs):
            shuffled, begin = batch.take(torch.randperm(batch.columns, generator=self.generator)), 0
            for width in sizes:
                yield shuffled.slice(begin, begin + width)
                begin += width


class StepCollector:
    """Walks all streams of a world with a policy; a rollout begins where the last one stopped."""

    def __init__(
        self, world: World, policy: PolicyNet, *, steps: int, gamma: float, scale_rewards: bool, seed: int
    ) -> None:
        self.world, self.policy = world, policy
        self.generator = torch.Generator().manual_seed(seed_for("act", seed))
        self.ticks = Ticks(policy, world.num_envs, steps=steps, gamma=gamma, scale_rewards=scale_rewards)  # pyright: ignore[reportArgumentType]
        self.view, self.start = world.reset(seed), np.ones(world.num_envs, bool)
        self.context = policy.initial_context(world.num_envs)

    @torch.no_grad()
    def collect(self, version: int) -> Rollout:
        """Return the next rollout."""
        while not self.ticks.full:
            obs, before = self.view.obs, self.context
            seen = Seen(
                obs={name: torch.from_numpy(x) for name, x in obs.items()},
                start=torch.from_numpy(self.start) if self.policy.sequential else None,
                context=before,
            )
            out = self.policy.act(seen, generator=self.generator)
            step = self.world.step(self.policy.env_action(out.action.numpy()))
            ended = step.terminated | step.truncated
            chosen = Chosen(
                action=out.action,
                value=out.value,
                log_prob=out.log_prob,
                obs=obs,
                context=before,
                context_after=out.context,
            )
            after = step.view.obs
            if step.final_obs is not None:  # only the rows of streams that ended need be true
                final = step.final_obs
                after = {n: np.where(ended.reshape(-1, *(1,) * (x.ndim - 1)), final[n], x) for n, x in after.items()}
            self.ticks.add(chosen, step.reward, step.terminated, step.truncated, after=after)
            self.view, self.start, self.context = step.view, ended, out.context
        return self.ticks.rollout(version)

    def episodes(self) -> EpisodeLog:
        """Return the log of finished episodes."""
        return self.ticks.episodes

    def between(self, version: int, progress: float) -> dict[str, float]:
        """Do what comes between two rollouts, and return its metrics."""
        return {}


class GoalCollector(StepCollector):
    """Collects for a policy with sub-goals; between two rollouts their manager learns and sets all of them anew."""

    world: GoalWorld  # pyright: ignore[reportIncompatibleVariableOverride]
    manager: PolicyTrainer
    decisions: Decisions

    def episodes(self) -> EpisodeLog:
        """Return the log of the environment's episodes, not of the sub-goals."""
        return self.decisions.episodes

    def between(self, version: int, progress: float) -> dict[str, float]:
        """Let the manager learn, then set new sub-goals."""
        assert self.world.view is not None
        metrics = self.manager.update(self.decisions.rollout(self.world.view, version), progress)
        self.decisions.reset_tape()
        self.view = self.world.begin()
        return {f"high_{name}": value for name, value in metrics.items()}


def save(folder: Path, config: Any, trainers: dict[str, PolicyTrainer], metrics: dict[str, float]) -> None:
    """Write weights.npz and state.json, each replaced as a whole; no pickle."""
    arrays: dict[str, Tensor] = {}
    for who, trainer in trainers.items():
        arrays |= {f"{who}.{name}": x.detach() for name, x in trainer.policy.state_dict().items()}
        arrays |= {f"adam.{who}.{name}": x for name, x in trainer.optimizer.tensors().items()}
    np.savez(folder / "weights.part.npz", **{name: x.numpy() for name, x in arrays.items()})
    (folder / "weights.part.npz").replace(folder / "weights.npz")
    (folder / "state.part.json").write_text(json.dumps({"config": asdict(config), **metrics}, indent=1))
    (folder / "state.part.json").replace(folder / "state.json")


def load(folder: Path, trainers: dict[str, PolicyTrainer]) -> None:
    """Read weights and optimiser as `save` wrote them; the streams begin anew."""
    with np.load(folder / "weights.npz", allow_pickle=False) as arrays:
        for who, trainer in trainers.items():
            policy, optimizer = trainer.policy, trainer.optimizer
            policy.load_state_dict({name: torch.from_numpy(arrays[f"{who}.{name}"]) for name in policy.state_dict()})
            optimizer.load({name: torch.from_numpy(arrays[f"adam.{who}.{name}"]) for name in optimizer.tensors()})


def run(
    config: Any,
    collector: StepCollector,
    trainers: dict[str, PolicyTrainer],
    print_every: int,
    save_every: int,
    *,
    out: Path | None = None,
    resume: Path | None = None,
) -> dict[str, PolicyTrainer]:
    """Train the first of `trainers`; the record goes to out/telemetry.ndjson, one line per update."""
    trainer, steps, updates, begin = next(iter(trainers.values())), 0, 0, time.perf_counter()
    if resume is not None:
        load(resume, trainers)
    while steps < config.total_steps:
        progress = min(1.0, steps / config.total_steps)
        rollout = collector.collect(updates)
        metrics = trainer.update(rollout, progress)
        steps, updates = steps + rollout.valid.size, updates + 1
        last = steps >= config.total_steps
        if not last:
            metrics |= collector.between(updates, progress)
        metrics = {"update": updates, "env_steps": steps, "seconds": time.perf_counter() - begin} | metrics
        mean_return, mean_length, _ = collector.episodes().recent()
        if mean_return is not None and mean_length is not None:
            metrics |= {"return": mean_return, "length": mean_length}
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            with open(out / "telemetry.ndjson", "a") as file:
                file.write(json.dumps(metrics) + "\n")
            if last or updates % save_every == 0:
                save(out, config, trainers, metrics)
        if last or updates % print_every == 0:
            shown = ("update", "env_steps", "return", "approx_kl", "loss")
            print(*(f"{name} {metrics[name]:.6g}" for name in shown if name in metrics), sep="  ", flush=True)
    return trainers


def parse(config: Any, title: str) -> tuple[Any, Path | None, Path | None]:
    """Read the command line: every field of `config` is an option, and --out DIR and --resume DIR."""
    parser = argparse.ArgumentParser(description=title.splitlines()[0])
    parser.add_argument("--out", type=Path, default=None, help="where the record and the weights go")
    parser.add_argument("--resume", type=Path, default=None, help="begin with the weights of this directory")
    for field in fields(config):
        value = field.default
        read = _reader(value)
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=read, default=value, help=f"default {value}")
    options = vars(parser.parse_args())
    out, resume = options.pop("out"), options.pop("resume")
    return config(**options), out, resume


def _reader(value: Any) -> Callable[[str], Any]:
    """Return the function that reads an option like `value` from text."""
    if isinstance(value, bool):
        return lambda text: text.lower() in ("1", "true", "yes")
    if isinstance(value, tuple):
        return lambda text: tuple(type(value[0])(part) for part in text.split(",") if part)
    return float if value is None else type(value)
