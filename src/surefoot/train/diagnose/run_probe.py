"""Play a run's environment to test what its record cannot tell, and try a remedy in a short experiment."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from surefoot.data.rollout import Rollout
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.policy import Policy
from surefoot.telemetry.doctor.doctor import Examination, ranked
from surefoot.telemetry.doctor.findings import Finding
from surefoot.telemetry.doctor.rules import Rule
from surefoot.train.collect.collector import Collector
from surefoot.train.diagnose.auto_recover import applicable, patched
from surefoot.train.diagnose.diagnostics import Diagnostics
from surefoot.train.diagnose.environment_tests import ROWS, environment_stats
from surefoot.train.diagnose.replay_tests import replay_stats
from surefoot.train.diagnose.stats_as_record import findings_of_stats
from surefoot.train.diagnose.step_features import Steps
from surefoot.train.spec import RunSpec
from surefoot.train.training import Training, WorldMaker

# Steps to play: four times what a run's own tests use, a second or less for most environments.
STEPS = 4 * ROWS
# Episodes that are needed to compare values with returns.
EPISODES = 8
# Seconds and env steps of each side of the experiment with a remedy.
TRY_SECONDS, TRY_STEPS = 4.0, 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeAnswer:
    """The answer of a probe to one question."""

    question: str
    answer: str
    evidence: dict[str, float]


def probe_environment(training: Training, *, seed: int = 0) -> tuple[list[ProbeAnswer], dict[str, float]]:
    """Play with an untrained and with the run's own policy; return answers, and the stats that rules are applied to.

    Args:
        training: The run, with the weights of a checkpoint; its environment is stepped.
        seed: Seed of the untrained policy.
    """
    world, spec = training.world, training.spec
    # The untrained policy tries every action for similar observations, which the tests of effects need.
    untrained = ActorCritic(world.observation, world.action, spec.net, seed=seed)
    rollouts = _play(training, untrained)
    diagnostics = Diagnostics(untrained, world.action)
    streams = max(1, min(rollouts[0].reward.shape[1], ROWS // 64))
    parts = [steps for rollout in rollouts if (steps := Steps.of(rollout, streams)) is not None]
    stats: dict[str, float] = {**diagnostics.measure(rollouts[0])}
    if parts:
        stats |= environment_stats(Steps.joined(parts), tuple(untrained.choices()), diagnostics.bounds)
    stats |= replay_stats(world, seed=spec.seed + 2)
    answers = [answer for make in (_actions, _replays, _observations, _rewards, _ends) for answer in make(stats)]
    return answers + _values(_play(training, training.policy), spec.ppo.gamma), stats


def _play(training: Training, policy: Policy) -> list[Rollout]:
    world, spec = training.world, training.spec
    steps = max(64, min(1024, STEPS // world.num_envs))
    collector = Collector(world, policy, steps=steps, gamma=spec.ppo.gamma, config=spec.collect, seed=spec.seed + 1)
    return [collector.collect() for _ in range(max(1, math.ceil(STEPS / (steps * world.num_envs))))]


def with_probe(examination: Examination, stats: dict[str, float], spec: RunSpec, rules: Sequence[Rule]) -> Examination:
    """Return the examination with the findings that the probe's stats give, instead of those of the record."""
    # What is normal in some tasks counts only if the run does not learn.
    fitting = [
        rule
        for rule in rules
        if rule.id.startswith(("E", "R22"))
        and not (examination.thriving and any(level.limits.get("unless_thriving") for level in rule.levels))
    ]
    probed_findings = findings_of_stats(spec, stats, fitting, longest=int(stats.get("episode_length", 10**6)))
    probed = {finding.rule: finding for finding in probed_findings}
    findings = [f for f in examination.findings if f.rule not in probed] + list(probed.values())
    return replace(examination, findings=ranked(findings, rules))


def _actions(stats: dict[str, float]) -> list[ProbeAnswer]:
    question = "Does the next observation depend on the action?"
    if "branch_effect" in stats:
        share, lag = stats["branch_effect"], stats.get("branch_lag", 0.0)
        answer = "no" if share < 0.05 else f"only {lag:.0f} steps later" if lag >= 1.0 else "yes"
        if answer == "yes" and stats.get("branch_size", 1.0) < 0.03:
            answer = f"hardly; by {stats['branch_size']:.1%} of what changes per step"
        names = [name for name in ("branch_effect", "branch_lag", "branch_size", "branch_leak") if name in stats]
        return [ProbeAnswer(question=question, answer=answer, evidence={name: stats[name] for name in names})]
    if "branch_gain" in stats:
        gain = stats["branch_gain"]
        answer = "yes" if gain > 0.2 else "hardly more than on chance"
        return [ProbeAnswer(question=question, answer=answer, evidence={"branch_gain": gain})]
    if "action_effect" not in stats:
        return []
    now, late = stats["action_effect"], stats["action_effect_late"]
    answer = "yes" if now >= 0.01 else "no"
    if late > 0.12 and now < 0.5 * late:
        answer = "only some steps later"
    evidence = {"action_effect": now, "action_effect_late": late}
    return [ProbeAnswer(question=question, answer=answer, evidence=evidence)]


def _replays(stats: dict[str, float]) -> list[ProbeAnswer]:
    if "replay_same_share" not in stats:
        return []
    reasons = {
        "rewards are random": stats.get("replay_reward_random", 0.0) > 0.03,
        "ends are random": stats.get("replay_end_random", 0.0) > 0.1,
        "the same situation is observed differently": stats.get("replay_view_correlation", 1.0) < 0.9,
    }
    found = [reason for reason, present in reasons.items() if present]
    share = stats["replay_same_share"]
    answer = f"in {share:.0%} of the cases" + (f"; {', '.join(found)}" if found else "")
    question = "Do the same seed and actions give the same episode again?"
    return [ProbeAnswer(question=question, answer=answer, evidence={"replay_same_share": share})]


def _observations(stats: dict[str, float]) -> list[ProbeAnswer]:
    names = {
        "obs_constant_share": "never change",
        "obs_repeat_share": "are repeated exactly",
        "obs_clock_share": "count the steps",
        "obs_saturated_share": "are cut off at their limits",
    }
    found = {name: stats[name] for name in names if stats.get(name, 0.0) > 0.0}
    answer = "; ".join(f"{share:.0%} {names[name]}" for name, share in found.items()) or "no"
    return [ProbeAnswer(question="Is something odd in the observations?", answer=answer, evidence=found)]


def _rewards(stats: dict[str, float]) -> list[ProbeAnswer]:
    if "reward_explained" not in stats:
        return []
    share, lag = stats["reward_explained"], int(stats.get("reward_lag", 0.0))
    answer = f"yes, {share:.0%} of its variance" if share >= 0.3 else f"hardly, {max(share, 0.0):.0%} of its variance"
    answer += f"; it fits the step {lag} steps before better" if lag else ""
    question = "Does the reward follow from observation and action?"
    return [
        ProbeAnswer(question=question, answer=answer, evidence={"reward_explained": share, "reward_lag": float(lag)})
    ]


def _ends(stats: dict[str, float]) -> list[ProbeAnswer]:
    if "end_explained" not in stats:
        return []
    area = stats["end_explained"]
    answer = "yes" if area >= 0.7 else "no, they look random"
    return [
        ProbeAnswer(
            question="Do terminations follow from what happens?", answer=answer, evidence={"end_explained": area}
        )
    ]


def _values(rollouts: Sequence[Rollout], gamma: float) -> list[ProbeAnswer]:
    """Compare the critic's values with the returns of complete episodes, and those with a shorter horizon's."""
    reward = np.concatenate([r.reward for r in rollouts]).astype(np.float64)
    value = np.concatenate([r.value for r in rollouts]).astype(np.float64)
    ended = np.concatenate([r.ended for r in rollouts])
    if ended.sum() < EPISODES:
        return []
    # Steps after the last end of a stream belong to unfinished episodes.
    complete = np.flip(np.maximum.accumulate(np.flip(ended, 0), axis=0), 0)
    returns = _returns(reward, ended, gamma)
    actual, predicted = returns[complete], value[complete]
    if actual.std() < 1e-9 or predicted.std() < 1e-9:
        return []
    fit = float(np.corrcoef(actual, predicted)[0, 1])
    shorter = 1.0 - 4.0 * (1.0 - gamma)
    same = float(np.corrcoef(actual, _returns(reward, ended, shorter)[complete])[0, 1]) if shorter > 0.0 else 0.0
    answers = [
        ProbeAnswer(
            question=f"Do the values predict the returns at gamma {gamma:g}?",
            answer=f"{'yes' if fit > 0.5 else 'hardly'}, correlation {fit:.2f}",
            evidence={"value_correlation": fit},
        )
    ]
    if shorter > 0.0:
        word = "yes" if same > 0.95 else "no"
        answers.append(
            ProbeAnswer(
                question=f"Would a horizon of a quarter (gamma {shorter:.4g}) rank steps alike?",
                answer=f"{word}, correlation {same:.2f}",
                evidence={"horizon_correlation": same},
            )
        )
    return answers


def _returns(reward: np.ndarray, ended: np.ndarray, gamma: float) -> np.ndarray:
    returns, after = np.empty_like(reward), np.zeros(reward.shape[1])
    for t in range(len(reward) - 1, -1, -1):
        after = returns[t] = reward[t] + gamma * np.where(ended[t], 0.0, after)
    return returns


def try_remedy(spec: RunSpec, make: WorldMaker | None, finding: Finding) -> ProbeAnswer | None:
    """Train a few seconds with and without the finding's settings, same seed; None if no setting can be changed."""
    patch = {knob: value for knob, value in finding.patch.items() if applicable(spec, {knob: value})}
    if not patch:
        return None
    results = {
        name: _trained(replace(each, total_steps=min(spec.total_steps, TRY_STEPS), eval_every=0), make)
        for name, each in (("unchanged", spec), ("changed", patched(spec, patch)))
    }
    before, after = results["unchanged"], results["changed"]
    if before is None or after is None:
        return None
    settings = ", ".join(f"{knob}={value}" for knob, value in patch.items())
    return ProbeAnswer(
        question=f"Does {settings} help within a few seconds of training?",
        answer=f"return {before:.4g} without, {after:.4g} with it",
        evidence={"without": before, "with": after},
    )


def _trained(spec: RunSpec, make: WorldMaker | None) -> float | None:
    """Return the mean return of about the last hundred episodes after a few seconds."""
    training = Training(spec, make=make)
    begin = time.process_time()
    for _ in training:
        if time.process_time() - begin > TRY_SECONDS:
            break
    mean = training.collector.episodes.recent()[0]
    training.world.close()
    return mean
