"""Check a run before it starts: settings that conflict with each other or do not suit the environment."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from surefoot.data.rollout import Rollout
from surefoot.data.spaces import choice_sizes
from surefoot.envs.api import World
from surefoot.errors import PolicyError, SurefootError
from surefoot.learn.schedule import value_at
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.networks import refuse_stateful_layers
from surefoot.nets.policy import Policy
from surefoot.telemetry.doctor.findings import Finding, Severity
from surefoot.telemetry.doctor.rules import shipped_rules
from surefoot.train.collect.collector import Collector
from surefoot.train.diagnose.stats_as_record import findings_of_stats
from surefoot.train.spec import RunSpec

# Steps with an untrained policy that show episode lengths and scales. More see longer episodes, fewer are faster.
STEPS = 2000
# A mean or deviation of observations above this is reported. Networks expect inputs of about unit scale; a lower limit
# would also report environments that train well without normalization.
FAR = 10.0
# Expected returns above this are reported: the value loss grows with their square and dominates the shared gradient norm.
LARGE = 1000.0
# An entropy bonus per step above this is reported. With 18 actions, the most of Atari, RL Zoo's largest ent_coef of 0.01
# gives 0.03.
BONUS = 0.2


def lint(spec: RunSpec, world: World, policy: Policy | None = None) -> list[Finding]:
    """Run the checks L1 to L9 on a spec, its environment and its policy, and return the findings, errors first.

    Settings are also compared with published ones, by the doctor's rules S01 to S24.

    Args:
        spec: The settings of the run.
        world: The environment. It is stepped and left within an episode; pass one that is not used for training.
        policy: The policy; None builds the standard one from the spec.
    """
    findings = [*_batch(spec), *_epochs(spec), *_schedule(spec), *_entropy(spec, world)]
    # Until episodes are seen: as if they were long.
    longest = 10**6
    try:
        policy = policy or ActorCritic(world.observation, world.action, spec.net, seed=spec.seed)
        if isinstance(policy, torch.nn.Module):
            try:
                refuse_stateful_layers(policy)
            except PolicyError as why:
                findings.append(_finding("L3", "error", str(why), {}, {}))
        # At least 16 steps per stream, so that many streams also finish some episodes.
        steps = max(16, STEPS // world.num_envs)
        collector = Collector(world, policy, steps=steps, gamma=spec.ppo.gamma, config=spec.collect, seed=spec.seed)
        rollout = collector.collect()
        lengths = [episode.length for episode in collector.episodes.take_fresh()]
        findings += _horizon(spec.ppo.gamma, lengths) + _scales(spec, rollout)
        longest = max(lengths, default=longest)
    except SurefootError as why:
        findings.append(_finding("L6", "error", f"The network does not fit the environment: {why}", {}, {}))
    findings += _published(spec, longest)
    order = ("error", "warn", "info")
    return sorted(findings, key=lambda f: (order.index(f.severity), f.rule))


def _finding(
    rule: str, severity: Severity, title: str, evidence: dict[str, float], patch: dict[str, Any], *causes: str
) -> Finding:
    return Finding(rule=rule, severity=severity, title=title, evidence=evidence, patch=patch, causes=list(causes))


def _batch(spec: RunSpec) -> list[Finding]:
    """Check L1 (minibatch size and rollout) and L4 (advantages normalized over few steps)."""
    batch = spec.ppo.batch_size
    size, _ = spec.ppo.minibatch_size_for(batch)
    sizes = {"minibatch_size": float(size), "batch": float(batch)}
    findings: list[Finding] = []
    if size > batch:
        findings.append(
            _finding("L1", "info", "The minibatch size is larger than the rollout", sizes, {"minibatch_size": batch})
        )
    elif batch % size:
        fits = max(n for n in range(1, size + 1) if batch % n == 0)
        title = "The minibatch size does not divide the rollout; minibatches differ slightly in size"
        # A divisor far below the chosen size would change learning more than uneven minibatches do.
        findings.append(_finding("L1", "info", title, sizes, {"minibatch_size": fits} if fits > size // 2 else {}))
    # From a handful of samples the deviation is mostly noise, and it scales the whole gradient.
    if spec.ppo.normalize_advantage == "minibatch" and min(size, batch) < 8:
        title = "Advantages are normalized over very few steps"
        patch: dict[str, Any] = {"normalize_advantage": "batch", "minibatch_size": 64}
        findings.append(_finding("L4", "warn", title, sizes, patch, "mean and deviation of few steps are noisy"))
    return findings


def _epochs(spec: RunSpec) -> list[Finding]:
    """Check L2: many epochs without a limit on the KL divergence."""
    ppo = spec.ppo
    # 10 epochs is the default of SB3 and of PPO's paper for continuous control, so only that many or more are reported.
    if ppo.target_kl is not None or ppo.adaptive_kl is not None or ppo.epochs < 10:
        return []
    title = "Many epochs per rollout without a KL limit that stops them early"
    return [_finding("L2", "info", title, {"epochs": float(ppo.epochs)}, {"target_kl": 0.02})]


def _schedule(spec: RunSpec) -> list[Finding]:
    """Check L7: a schedule that ends long before the run."""
    total, first = spec.total_updates, value_at(spec.ppo.lr, progress=0.0, updates=0)
    for share in (0.25, 0.5, 0.75, 0.9):
        lr = value_at(spec.ppo.lr, progress=share, updates=int(share * total))
        if lr < 1e-3 * first:
            title = f"The learning rate is almost 0 after {share:.0%} of the run"
            evidence = {"lr": lr, "lr_at_start": first, "updates": float(total)}
            return [
                _finding("L7", "warn", title, evidence, {"lr": f"lin_{first:g}"}, "the schedule is for a shorter run")
            ]
    return []


def _entropy(spec: RunSpec, world: World) -> list[Finding]:
    """Check L9: the entropy bonus for the number of choices. It is at most ent_coef times the sum of their logarithms."""
    most = sum(math.log(n) for n in choice_sizes(world.action))
    bonus = value_at(spec.ppo.ent_coef, progress=0.0, updates=0) * most
    if bonus <= BONUS:
        return []
    title = "The entropy bonus is large for this number of actions"
    evidence = {"largest_bonus": bonus, "entropy_max": most}
    patch = {"ent_coef": float(f"{0.1 * BONUS / most:.1g}")}
    return [
        _finding("L9", "warn", title, evidence, patch, "advantages have a size of 1; the bonus must be far below it")
    ]


def _published(spec: RunSpec, longest: int) -> list[Finding]:
    """Compare settings with those that were published; the rules and their source are in the doctor's `rules.yaml`."""
    batch = spec.ppo.batch_size
    size, _ = spec.ppo.minibatch_size_for(batch)
    steps = float(spec.ppo.epochs * max(1, math.ceil(batch / max(1, size))))
    rules = [rule for rule in shipped_rules() if rule.sign.__name__ == "setting"]
    findings = findings_of_stats(spec, {"minibatches": steps}, rules, longest=longest)
    # Before a run there is no time since which it is so.
    return [replace(finding, since_update=0, since_env_steps=0, primary=False) for finding in findings]


def _horizon(gamma: float, lengths: list[int]) -> list[Finding]:
    """Check L5: a discount whose horizon is much shorter than an episode. Episodes of one step need none."""
    # The mean of one or two episodes is too noisy to compare with.
    if len(lengths) < 3 or max(lengths) < 2:
        return []
    horizon, length = 1.0 / max(1.0 - gamma, 1e-9), float(np.mean(lengths))
    evidence = {"horizon": horizon, "episode_length": length}
    if horizon < length / 20.0:
        title = "The horizon of the discount is much shorter than an episode"
        # The suggested discount has a horizon of a fifth of an episode.
        return [_finding("L5", "info", title, evidence, {"gamma": float(f"{1.0 - 5.0 / length:.3g}")})]
    return []


def _scales(spec: RunSpec, rollout: Rollout) -> list[Finding]:
    """Check L8: the scale of observations and returns."""
    findings: list[Finding] = []
    for name, part in rollout.obs.items():
        if part.dtype.kind != "f" or spec.net.normalize_obs:
            continue
        rows = part.reshape(-1, max(1, math.prod(part.shape[2:]))).astype(np.float64)
        far = float(max(np.abs(rows.mean(0)).max(), rows.std(0).max()))
        if far > FAR:
            title = f"Observation {name!r} is far from 0 or widely spread, and it is not normalized"
            findings.append(_finding("L8", "info", title, {"largest": far}, {"normalize_obs": True}))
    # With gamma = 1 the horizon would be infinite; 1000 steps are a long episode.
    horizon = min(1.0 / max(1.0 - spec.ppo.gamma, 1e-9), 1000.0)
    size = float(np.abs(rollout.reward).mean()) * horizon
    if size > LARGE and not (spec.collect.normalize_reward or spec.ppo.normalize_value):
        title = "Returns are large, and they are not scaled"
        evidence = {"expected_return": size, "reward": float(np.abs(rollout.reward).mean())}
        findings.append(
            _finding("L8", "warn" if size > 10 * LARGE else "info", title, evidence, {"normalize_reward": True})
        )
    return findings
