"""Faults put into runs on purpose: in settings, in the code between collecting and learning, and in environments.

`held_out` marks those that were set aside while the rules E01 to E14 and S01 to S17 were made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from surefoot.core.batch import Batch
from surefoot.envs.api import Step
from surefoot.learn.schedule import value_at
from surefoot.train.spec import RunSpec
from surefoot.train.training import Training
from workloads import faulty_envs as faulty


@dataclass(frozen=True)
class Fault:
    """Something that is wrong on purpose."""

    name: str
    right: tuple[str, ...]
    """Rules of which one should come first."""
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    inject: Callable[[Training], None] | None = None
    held_out: bool = False
    envs: tuple[str, ...] | None = None
    """Where only some envs can have it."""
    before: Callable[[RunSpec], RunSpec] | None = None
    wrap: faulty.Wrap | None = None
    """A fault of the environment: a wrapper around Gymnasium's."""


def on_rollout(change: Callable[[Training, Any], None]) -> Callable[[Training], None]:
    """A fault that spoils each rollout between collecting and learning."""

    def inject(training: Training) -> None:
        collect = training.collector.collect

        def spoiled(policy_version: int = 0) -> Any:
            rollout = collect(policy_version)
            change(training, rollout)
            return rollout

        training.collector.collect = spoiled  # pyright: ignore[reportAttributeAccessIssue]

    return inject


def scale_reward(factor: float) -> Callable[[Training], None]:
    return on_rollout(lambda training, rollout: rollout.reward.__imul__(np.float32(factor)))


def no_reward(training: Training, rollout: Any) -> None:
    rollout.reward[:] = 0.0


def no_bootstrap(training: Training, rollout: Any) -> None:
    rollout.next_value[-1] = 0.0
    rollout.next_value[rollout.truncated] = 0.0


def clipped_actions(training: Training, rollout: Any) -> None:
    low, high = training.world.action.bounds()  # pyright: ignore[reportAttributeAccessIssue]
    np.clip(rollout.action, 0.5 * low, 0.5 * high, out=rollout.action)


def normaliser_moves(training: Training, rollout: Any) -> None:
    """Statistics are taken in before the update instead of after it."""
    training.policy.absorb({name: x.reshape(-1, *x.shape[2:]) for name, x in rollout.obs.items()})


def limit_as_end(training: Training) -> None:
    """The world says terminated at its time limit."""
    world, step = training.world, training.world.step

    def wrong(action: np.ndarray) -> Step:
        answer = step(action)
        answer.terminated = answer.terminated | answer.truncated
        answer.truncated = np.zeros_like(answer.truncated)
        return answer

    world.step = wrong  # pyright: ignore[reportAttributeAccessIssue]


def nan_reward(training: Training) -> None:
    step, count = training.world.step, [0]

    def wrong(action: np.ndarray) -> Step:
        answer, count[0] = step(action), count[0] + 1
        if count[0] == 700:
            answer.reward[0] = np.nan
        return answer

    training.world.step = wrong  # pyright: ignore[reportAttributeAccessIssue]


def flipped_advantage(training: Training) -> None:
    steps = training.learner.steps
    prepare = steps.prepare

    def wrong(rollout: Any, valid: Any) -> Any:
        batch, moments = prepare(rollout, valid)
        batch.advantage.neg_()
        return batch, moments

    steps.prepare = wrong  # pyright: ignore[reportAttributeAccessIssue]


def batch_statistics(training: Training) -> None:
    """Observations are standardised by their own minibatch while learning, as batch norm does."""
    evaluate = training.policy.evaluate

    def wrong(batch: Batch) -> Any:
        def own(x: torch.Tensor) -> torch.Tensor:
            flat = x.reshape(-1, *x.shape[2:])
            return (x - flat.mean(0)) / (flat.std(0) + 1e-5)

        return evaluate(replace(batch, obs={name: own(x) for name, x in batch.obs.items()}))

    training.policy.evaluate = wrong  # pyright: ignore[reportAttributeAccessIssue]


def nan_observation(training: Training) -> None:
    step, count = training.world.step, [0]

    def wrong(action: np.ndarray) -> Step:
        answer, count[0] = step(action), count[0] + 1
        if count[0] == 900:
            next(iter(answer.view.obs.values()))[0] = np.nan
        return answer

    training.world.step = wrong  # pyright: ignore[reportAttributeAccessIssue]


def old_rollouts(training: Training) -> None:
    """Every update learns from what was collected eight updates before."""
    collect, kept = training.collector.collect, list[Any]()

    def late(policy_version: int = 0) -> Any:
        kept.append(collect(policy_version))
        return kept[0] if len(kept) < 9 else kept.pop(0)

    training.collector.collect = late  # pyright: ignore[reportAttributeAccessIssue]


def dropout(training: Training, share: float = 0.2) -> None:
    """Hidden units fall out while learning, not while acting."""
    evaluate = training.policy.evaluate

    def wrong(batch: Batch) -> Any:
        spoiled = {name: torch.nn.functional.dropout(x, share) for name, x in batch.obs.items()}
        return evaluate(replace(batch, obs=spoiled))

    training.policy.evaluate = wrong  # pyright: ignore[reportAttributeAccessIssue]


def without(words: tuple[str, ...]) -> Callable[[Training], None]:
    """Parameters whose name has one of these in it get no gradient that counts."""

    def inject(training: Training) -> None:
        policy = training.policy
        assert isinstance(policy, torch.nn.Module)
        for name, parameter in policy.named_parameters():
            if any(word in name for word in words):
                parameter.register_hook(torch.zeros_like)

    return inject


def reinitialised(training: Training, every: int = 1) -> None:
    """Every cycle, or every few, begins with the first weights."""
    kept = {name: x.clone() for name, x in training.policy.state_dict().items()}
    collect, count = training.collector.collect, [0]

    def again(policy_version: int = 0) -> Any:
        count[0] += 1
        if count[0] % every == 0:
            training.policy.load_state_dict(kept)
        return collect(policy_version)

    training.collector.collect = again  # pyright: ignore[reportAttributeAccessIssue]


def ent_coef(value: float) -> Callable[[Training], None]:
    """Any number, those that no config would take as well."""

    def inject(training: Training) -> None:
        knobs = training.learner.knobs

        def wrong(progress: float | None = None) -> Any:
            return knobs(progress)._replace(ent_coef=value)

        training.learner.knobs = wrong  # pyright: ignore[reportAttributeAccessIssue]

    return inject


def shifted_observations(training: Training, rollout: Any) -> None:
    """Actions are stored with the observation of another step."""
    for x in rollout.obs.values():
        x[:] = np.roll(x, 1, axis=0)


def _times_lr(spec: RunSpec, factor: float) -> RunSpec:
    first = value_at(spec.ppo.lr, progress=0.0, updates=0)
    return replace(spec, ppo=spec.ppo.replace(lr=first * factor))


TORCH = {"path": "torch"}
RAW = {"normalize_reward": False}
CONTINUOUS = ("Pendulum-v1", "MountainCarContinuous-v0", "surefoot/CartPoleContinuous-v0")
CHOICES = ("CartPole-v1", "Acrobot-v1", "surefoot/ContextBandit-v0")
"""A Gaussian of any width still learns Pendulum: its mean goes beyond the bounds."""
FAULTS = [
    Fault("lr-x100", ("R03X", "R03", "S01"), before=lambda spec: _times_lr(spec, 100.0)),
    Fault("reward-x1e4", ("R24",), RAW, scale_reward(1e4)),
    Fault("ent-coef-high", ("R07", "S03"), {"ent_coef": 10.0}, envs=CHOICES),
    Fault("ent-coef-low", ("R06", "S03"), {}, ent_coef(-3.0)),
    Fault("advantage-sign", ("R26", "R11", "R29"), TORCH, flipped_advantage),
    Fault("no-bootstrap", ("R21B",), {}, on_rollout(no_bootstrap)),
    Fault("limit-as-end", ("R21",), TORCH, limit_as_end, envs=("CartPole-v1", "Acrobot-v1", "Pendulum-v1")),
    Fault("dropout", ("R02",), TORCH, dropout),
    Fault("normaliser-moves", ("R02",), {"normalize_obs": True}, on_rollout(normaliser_moves)),
    Fault("frozen-critic", ("R27",), TORCH, without(("critic", "value"))),
    Fault("not-in-optimiser", ("R27",), TORCH, without(("actor",))),
    Fault("nan-reward", ("R01",), TORCH, nan_reward),
    Fault("reinitialised", ("R28", "R17"), {}, reinitialised),
    Fault("two-writers", ("R19",), {}),
    Fault("constant-reward", ("R10",), RAW, on_rollout(no_reward)),
    Fault("clipped-actions", ("R02",), {}, on_rollout(clipped_actions), envs=CONTINUOUS),
    Fault("lr-x30", ("R03X", "R03", "S01"), before=lambda spec: _times_lr(spec, 30.0)),
    Fault("lr-x1e-3", ("R04", "S01"), before=lambda spec: _times_lr(spec, 1e-3)),
    Fault("reward-x1e6", ("R24",), RAW, scale_reward(1e6)),
    Fault("reward-sign", ("R26", "R11"), {}, scale_reward(-1.0)),
    Fault("shifted-observations", ("R02",), {}, on_rollout(shifted_observations)),
    Fault("obs-zero", ("E01",), wrap=lambda env: faulty.ChangedObservation(env, faulty.zero)),
    Fault("obs-half-zero", ("E03",), wrap=lambda env: faulty.ChangedObservation(env, faulty.half)),
    Fault("obs-cut-off", ("E06",), wrap=lambda env: faulty.ChangedObservation(env, faulty.cut_off)),
    Fault("obs-huge", ("E05", "R22"), wrap=lambda env: faulty.ChangedObservation(env, lambda obs, rng: 1e5 * obs)),
    Fault("obs-clock", ("E04",), wrap=lambda env: faulty.WithClock(env, 0.05)),
    Fault("obs-shuffled", ("E07",), wrap=lambda env: faulty.ChangedObservation(env, faulty.shuffled)),
    Fault("obs-late-2", ("E09", "E02"), wrap=lambda env: faulty.LateObservation(env, 2)),
    Fault("obs-frozen-8", ("E02",), wrap=lambda env: faulty.FrozenObservation(env, 8)),
    Fault("action-random", ("E08",), wrap=lambda env: faulty.ChangedAction(env, faulty.random_action)),
    Fault("action-constant", ("E08",), wrap=lambda env: faulty.ChangedAction(env, faulty.constant_action)),
    Fault("action-late-3", ("E09",), wrap=lambda env: faulty.LateAction(env, 3)),
    Fault("reward-random", ("E10",), wrap=lambda env: faulty.ChangedReward(env, lambda r, rng: rng.normal())),
    Fault("reward-noise", ("E10",), wrap=lambda env: faulty.ChangedReward(env, lambda r, rng: r + 10 * rng.normal())),
    Fault(
        "reward-late-5", ("E11",), wrap=lambda env: faulty.LateReward(env, 5), envs=("Pendulum-v1", "LunarLander-v3")
    ),
    Fault("reward-at-end", ("E12",), wrap=lambda env: faulty.LateReward(env, 0)),
    Fault("reward-flipped", ("E14",), wrap=lambda env: faulty.ChangedReward(env, lambda r, rng: -r)),
    Fault("reward-zero", ("R10",), wrap=lambda env: faulty.ChangedReward(env, lambda r, rng: 0.0)),
    Fault("ends-random", ("E13",), wrap=lambda env: faulty.RandomEnd(env, 0.1)),
    Fault("gamma-low", ("S02",), {"gamma": 0.5}),
    Fault("lam-zero", ("S05",), {"lam": 0.0}),
    Fault("ent-coef-1", ("S03",), {"ent_coef": 1.0}),
    Fault("clip-tiny", ("S04",), {"clip": 0.001}),
    Fault("clip-huge", ("S04",), {"clip": 5.0}),
    Fault("vf-coef-100", ("S06",), {"vf_coef": 100.0}),
    Fault("grad-norm-tiny", ("S07",), {"max_grad_norm": 1e-4}),
    Fault("epochs-100", ("S08",), {"epochs": 100}),
    Fault("one-gradient-step", ("S09",), {"epochs": 1, "minibatches": 1}),
    Fault("minibatch-2", ("S10",), {"minibatch_size": 2}),
    Fault("hidden-1", ("S13",), {"hidden": "1"}),
    Fault("target-kl-tiny", ("S14",), {"target_kl": 1e-5}),
    Fault("adam-eps-1", ("S17",), {"adam_eps": 1.0}),
    Fault("weight-decay-5", ("S16",), {"weight_decay": 5.0, "optimizer": "adamw"}),
    Fault("lr-x300", ("R03X", "R03", "S01"), before=lambda spec: _times_lr(spec, 300.0), held_out=True),
    Fault("reward-x1e5", ("R24",), RAW, scale_reward(1e5), held_out=True),
    Fault("ent-coef-higher", ("R07", "S03"), {"ent_coef": 30.0}, held_out=True, envs=CHOICES[:2]),
    Fault("batch-statistics", ("R02",), TORCH, batch_statistics, held_out=True),
    Fault("dropout-half", ("R02",), TORCH, lambda training: dropout(training, 0.5), held_out=True),
    Fault("first-layer-frozen", ("R27",), TORCH, without(("actor.0", "critic.0")), held_out=True),
    Fault("nan-observation", ("R01",), TORCH, nan_observation, held_out=True),
    Fault("obs-noise", ("E07",), wrap=lambda env: faulty.ChangedObservation(env, faulty.noise), held_out=True),
    Fault("obs-offset", ("R22",), wrap=lambda env: faulty.ChangedObservation(env, faulty.offset), held_out=True),
    Fault("obs-before-step", ("E09", "E02"), wrap=lambda env: faulty.LateObservation(env, 1), held_out=True),
    Fault("obs-late-5", ("E09", "E02"), wrap=lambda env: faulty.LateObservation(env, 5), held_out=True),
    Fault("obs-frozen-3", ("E02",), wrap=lambda env: faulty.FrozenObservation(env, 3), held_out=True),
    Fault("obs-first-only", ("E01", "E02"), wrap=lambda env: faulty.FrozenObservation(env, 10**9), held_out=True),
    Fault("obs-time-stamp", ("E04", "R22"), wrap=lambda env: faulty.WithClock(env, 1.0), held_out=True),
    Fault("obs-sign-only", ("E06",), wrap=lambda env: faulty.ChangedObservation(env, faulty.sign_only), held_out=True),
    Fault(
        "action-mostly-random",
        ("E08",),
        wrap=lambda env: faulty.ChangedAction(env, faulty.mostly_random),
        held_out=True,
    ),
    Fault("action-late-1", ("E09",), wrap=lambda env: faulty.LateAction(env, 1), held_out=True),
    Fault("reward-coin", ("E10",), wrap=lambda env: faulty.ChangedReward(env, faulty.coin), held_out=True),
    Fault("reward-late-3", ("E11",), wrap=lambda env: faulty.LateReward(env, 3), held_out=True, envs=("Pendulum-v1",)),
    Fault("ends-random-rare", ("E13",), wrap=lambda env: faulty.RandomEnd(env, 0.03), held_out=True),
    Fault("limit-is-end-env", ("R21",), wrap=faulty.LimitIsEnd, held_out=True, envs=("CartPole-v1", "Pendulum-v1")),
    Fault("gamma-02", ("S02",), {"gamma": 0.2}, held_out=True),
    Fault("lam-03", ("S05",), {"lam": 0.3}, held_out=True),
    Fault("ent-coef-03", ("S03", "R07"), {"ent_coef": 0.3}, held_out=True),
    Fault("clip-001", ("S04",), {"clip": 0.01}, held_out=True),
    Fault("vf-coef-tiny", ("S06",), {"vf_coef": 1e-3}, held_out=True),
    Fault("lr-005", ("S01", "R03X", "R03"), {"lr": 0.05}, held_out=True),
    Fault("lr-1e-7", ("S01", "R04"), {"lr": 1e-7}, held_out=True),
    Fault("epochs-200", ("S08",), {"epochs": 200}, held_out=True),
    Fault("grad-norm-1e-6", ("S07",), {"max_grad_norm": 1e-6}, held_out=True),
    Fault("hidden-2", ("S13",), {"hidden": "2,2"}, held_out=True),
    Fault("noise-far", ("S15",), {"log_std_init": 2.0}, held_out=True, envs=("Pendulum-v1", "InvertedPendulum-v5")),
    Fault("old-rollouts", ("R16",), {}, old_rollouts, held_out=True),
    Fault("reloaded-now-and-then", ("R28", "R17"), {}, lambda training: reinitialised(training, 3), held_out=True),
]
