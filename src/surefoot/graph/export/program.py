"""The loop of a standalone program: it connects the library's functions and networks to a run.

This is ordinary code; `standalone` copies its source into the program together with the library definitions that it uses. It
is separate from `train` so that a program contains only what it needs: no kernel, no recovery, no reports.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from surefoot.core.batch import Batch
from surefoot.core.divergence import k3
from surefoot.core.losses import LOG_RATIO_LIMIT, ppo_loss
from surefoot.core.masked import masked_mean
from surefoot.core.moments import standardize
from surefoot.data.rollout import Rollout
from surefoot.data.seeds import seed_for
from surefoot.envs.api import World
from surefoot.envs.goals import GoalWorld
from surefoot.graph.export.program_policy import PolicyNet
from surefoot.learn.minibatches import split_sizes
from surefoot.learn.optimizer import Optimizer
from surefoot.learn.prepare import to_batch
from surefoot.nets.policy import PolicyInput
from surefoot.train.algorithms.hierarchy import Decisions
from surefoot.train.collect.episodes import EpisodeLog
from surefoot.train.collect.tick_collector import ActionRecord, Ticks


class PolicyTrainer:
    """Updates one policy with PPO. `knobs(progress)` returns the settings at that share of the run."""

    def __init__(self, policy: PolicyNet, knobs: Callable[[float], Any], seed: int) -> None:
        self.policy, self.knobs = policy, knobs
        self.optimizer = Optimizer(policy.parameters(), knobs(0.0))
        self.generator = torch.Generator().manual_seed(seed_for("shuffle", seed))

    def update(self, rollout: Rollout, progress: float) -> dict[str, float]:
        """Run all epochs over one rollout and return the metrics."""
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
        # A minibatch is a set of columns; for a recurrent policy a column is a complete stream.
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
            kl = masked_mean(k3(log_ratio), minibatch.valid)
            # Checked before the step, as in the library: the step that would exceed the limit is not taken.
            if knobs.target_kl is not None and float(kl) > knobs.kl_stop_factor * knobs.target_kl:
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
            log_ratio = torch.cat(log_ratios)
            outside = log_ratio.expm1().abs() > knobs.clip
            metrics |= dict(zip(names, torch.stack(rows).mean(dim=0).tolist(), strict=True))
            metrics |= {"approx_kl": float(k3(log_ratio).mean()), "clip_fraction": float(outside.float().mean())}
        return metrics

    def _minibatches(self, batch: Batch, epochs: int, sizes: list[int]) -> Any:
        """Yield the minibatches of all epochs; each epoch has all columns once, shuffled."""
        for _ in range(epochs):
            shuffled, begin = batch.take(torch.randperm(batch.columns, generator=self.generator)), 0
            for width in sizes:
                yield shuffled.slice(begin, begin + width)
                begin += width


class StepCollector:
    """Collects rollouts of all streams with a policy; a rollout begins where the last one stopped."""

    def __init__(
        self, world: World, policy: PolicyNet, *, steps: int, gamma: float, scale_rewards: bool, seed: int
    ) -> None:
        self.world, self.policy = world, policy
        self.generator = torch.Generator().manual_seed(seed_for("act", seed))
        self.ticks = Ticks(policy, world.num_envs, steps=steps, gamma=gamma, scale_rewards=scale_rewards)  # pyright: ignore[reportArgumentType]
        # An episode begins in every copy.
        self.view, self.start = world.reset(seed), np.ones(world.num_envs, bool)
        self.context = policy.initial_context(world.num_envs)

    @torch.no_grad()
    def collect(self, version: int) -> Rollout:
        """Return the next rollout."""
        while not self.ticks.full:
            obs, before = self.view.obs, self.context
            inputs = PolicyInput(
                obs={name: torch.from_numpy(x) for name, x in obs.items()},
                start=torch.from_numpy(self.start) if self.policy.sequential else None,
                context=before,
            )
            out = self.policy.act(inputs, generator=self.generator)
            step = self.world.step(self.policy.env_action(out.action.numpy()))
            ended = step.terminated | step.truncated
            chosen = ActionRecord(
                action=out.action,
                value=out.value,
                log_prob=out.log_prob,
                obs=obs,
                context=before,
                context_after=out.context,
            )
            after = step.view.obs
            # Only the rows of final_obs whose episode ended are defined.
            if step.final_obs is not None:
                final = step.final_obs
                after = {n: np.where(ended.reshape(-1, *(1,) * (x.ndim - 1)), final[n], x) for n, x in after.items()}
            self.ticks.add(chosen, step.reward, step.terminated, step.truncated, after=after)
            self.view, self.start, self.context = step.view, ended, out.context
        return self.ticks.rollout(version)

    def episodes(self) -> EpisodeLog:
        """Return the log of finished episodes."""
        return self.ticks.episodes

    def between(self, version: int, progress: float) -> dict[str, float]:
        """Work between two rollouts, and return its metrics."""
        return {}


class GoalCollector(StepCollector):
    """Collects for a policy with sub-goals; between two rollouts the manager learns and sets new sub-goals."""

    world: GoalWorld  # pyright: ignore[reportIncompatibleVariableOverride]
    manager: PolicyTrainer
    decisions: Decisions

    def episodes(self) -> EpisodeLog:
        """Return the log of the environment's episodes, not of the sub-goals."""
        return self.decisions.episodes

    def between(self, version: int, progress: float) -> dict[str, float]:
        """Update the manager, then set new sub-goals."""
        assert self.world.view is not None
        metrics = self.manager.update(self.decisions.rollout(self.world.view, version), progress)
        self.decisions.reset_tape()
        self.view = self.world.begin()
        return {f"high_{name}": value for name, value in metrics.items()}


def save(folder: Path, config: Any, trainers: dict[str, PolicyTrainer], metrics: dict[str, float]) -> None:
    """Write weights.npz and state.json, each replaced atomically; no pickle."""
    arrays: dict[str, Tensor] = {}
    for who, trainer in trainers.items():
        arrays |= {f"{who}.{name}": x.detach() for name, x in trainer.policy.state_dict().items()}
        arrays |= {f"adam.{who}.{name}": x for name, x in trainer.optimizer.tensors().items()}
    weights: dict[str, Any] = {name: x.numpy() for name, x in arrays.items()}
    # Written beside the target and renamed: a crash leaves the previous file.
    np.savez(folder / "weights.part.npz", **weights)
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
