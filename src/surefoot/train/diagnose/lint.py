"""What can be said against a run before it begins: settings that do not go together, or not with this world."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from surefoot.data.rollout import Rollout
from surefoot.envs.api import World
from surefoot.errors import PolicyError, SurefootError
from surefoot.learn.schedule import value_at
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.networks import refuse_stateful_layers
from surefoot.nets.policy import Policy
from surefoot.telemetry.doctor.findings import Finding, Severity
from surefoot.train.collect.collector import Collector
from surefoot.train.spec import RunSpec

STEPS = 2000
"""Taken with an untrained policy to see what the world is like."""
FAR = 10.0
LARGE = 1000.0


def lint(spec: RunSpec, world: World, policy: Policy | None = None) -> list[Finding]:
    """L1 to L8 for a spec, its world and its policy (the standard one if None is given); the gravest first.

    The world is stepped a little and left somewhere in the middle; give one that nobody trains on.
    """
    findings = [*_batch(spec), *_far(spec), *_schedule(spec)]
    try:
        policy = policy or ActorCritic(world.observation, world.action, spec.net, seed=spec.seed)
        if isinstance(policy, torch.nn.Module):
            try:
                refuse_stateful_layers(policy)
            except PolicyError as why:
                findings.append(_finding("L3", "error", str(why), {}, {}))
        # A few steps show how long episodes are and how large numbers get.
        steps = max(16, STEPS // world.num_envs)
        collector = Collector(world, policy, steps=steps, gamma=spec.ppo.gamma, config=spec.collect, seed=spec.seed)
        rollout = collector.collect()
        lengths = [episode.length for episode in collector.episodes.take_fresh()]
        findings += _horizon(spec.ppo.gamma, lengths) + _scales(spec, rollout)
    except SurefootError as why:
        findings.append(_finding("L6", "error", f"The network does not fit the world: {why}", {}, {}))
    order = ("error", "warn", "info")
    return sorted(findings, key=lambda f: (order.index(f.severity), f.rule))


def _finding(
    rule: str, severity: Severity, title: str, evidence: dict[str, float], patch: dict[str, Any], *causes: str
) -> Finding:
    return Finding(rule=rule, severity=severity, title=title, evidence=evidence, patch=patch, causes=list(causes))


def _batch(spec: RunSpec) -> list[Finding]:
    """L1 and L4."""
    batch = spec.ppo.batch_size
    size, _ = spec.ppo.minibatch_size_for(batch)
    sizes = {"minibatch_size": float(size), "batch": float(batch)}
    findings: list[Finding] = []
    if size > batch:
        findings.append(
            _finding("L1", "info", "A minibatch is larger than the rollout", sizes, {"minibatch_size": batch})
        )
    elif batch % size:
        fits = max(n for n in range(1, size + 1) if batch % n == 0)
        title = "The minibatch size does not divide the rollout; minibatches are made a little uneven"
        findings.append(_finding("L1", "info", title, sizes, {"minibatch_size": fits} if fits > size // 2 else {}))
    if spec.ppo.normalize_advantage == "minibatch" and min(size, batch) < 8:
        title = "Advantages are standardised over very few steps"
        patch: dict[str, Any] = {"normalize_advantage": "batch", "minibatch_size": 64}
        findings.append(_finding("L4", "warn", title, sizes, patch, "mean and deviation of so few say little"))
    return findings


def _far(spec: RunSpec) -> list[Finding]:
    """L2."""
    ppo = spec.ppo
    if ppo.target_kl is not None or ppo.adaptive_kl is not None or ppo.epochs < 10:
        return []
    title = "Many epochs over each rollout and nothing that stops them"
    return [_finding("L2", "info", title, {"epochs": float(ppo.epochs)}, {"target_kl": 0.02})]


def _schedule(spec: RunSpec) -> list[Finding]:
    """L7."""
    total, first = spec.total_updates, value_at(spec.ppo.lr, progress=0.0, updates=0)
    for share in (0.25, 0.5, 0.75, 0.9):
        lr = value_at(spec.ppo.lr, progress=share, updates=int(share * total))
        if lr < 1e-3 * first:
            title = f"The learning rate is all but 0 after {share:.0%} of the run"
            evidence = {"lr": lr, "lr_at_start": first, "updates": float(total)}
            return [
                _finding("L7", "warn", title, evidence, {"lr": f"lin_{first:g}"}, "the schedule is for a shorter run")
            ]
    return []


def _horizon(gamma: float, lengths: list[int]) -> list[Finding]:
    """L5; an episode of one step needs no horizon."""
    if len(lengths) < 3 or max(lengths) < 2:
        return []
    horizon, length = 1.0 / max(1.0 - gamma, 1e-9), float(np.mean(lengths))
    evidence = {"horizon": horizon, "episode_length": length}
    if horizon < length / 20.0:
        title = "The discount forgets most of an episode"
        return [_finding("L5", "info", title, evidence, {"gamma": float(f"{1.0 - 5.0 / length:.3g}")})]
    return []


def _scales(spec: RunSpec, rollout: Rollout) -> list[Finding]:
    """L8."""
    findings: list[Finding] = []
    for name, part in rollout.obs.items():
        if part.dtype.kind != "f" or spec.net.normalize_obs:
            continue
        rows = part.reshape(-1, max(1, math.prod(part.shape[2:]))).astype(np.float64)
        far = float(max(np.abs(rows.mean(0)).max(), rows.std(0).max()))
        if far > FAR:
            title = f"Observation {name!r} is far from 0 or widely spread, and nothing standardises it"
            findings.append(_finding("L8", "info", title, {"largest": far}, {"normalize_obs": True}))
    horizon = min(1.0 / max(1.0 - spec.ppo.gamma, 1e-9), 1000.0)
    size = float(np.abs(rollout.reward).mean()) * horizon
    if size > LARGE and not (spec.collect.normalize_reward or spec.ppo.normalize_value):
        title = "Returns are large, and nothing scales them"
        evidence = {"expected_return": size, "reward": float(np.abs(rollout.reward).mean())}
        findings.append(
            _finding("L8", "warn" if size > 10 * LARGE else "info", title, evidence, {"normalize_reward": True})
        )
    return findings
