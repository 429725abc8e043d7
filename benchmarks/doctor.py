"""Does the doctor find what is wrong? Faults put into runs on purpose, beside healthy runs that have none.

Each fault of FAULTS is trained in three envs with three seeds and must be found (a finding of warning or worse) and named
first: the finding to begin with, the last so named where all is over at the end, is one of the fault's own. Healthy runs
must have no finding of error or worse. The rules were tuned on the part called "tuned" only; "held out" are faults, envs
and seeds that were never looked at while the numbers of rules.yaml were chosen, and they are what counts.

Runs are kept one by one in results/doctor.json, so that the benchmark can be stopped and go on; --fresh starts over.

python benchmarks/doctor.py                     everything
python benchmarks/doctor.py lr-x100 healthy     only faults whose name has one of these in it
python benchmarks/doctor.py --part tuned        what the rules may be tuned on
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch

from surefoot.core.batch import Batch
from surefoot.envs.api import Step
from surefoot.envs.gym.single_envs import EnvsWorld
from surefoot.envs.make import make_world
from surefoot.errors import SurefootError
from surefoot.telemetry.doctor.doctor import Doctor
from surefoot.telemetry.doctor.findings import Finding, severity_rank
from surefoot.telemetry.reader import scan
from surefoot.telemetry.schema import UpdateRecord
from surefoot.train.run import create_run
from surefoot.train.rundir.rundir import RunDir
from surefoot.train.spec import RunSpec, make_spec
from surefoot.train.training import Training
from workloads import faulty_envs as faulty

HERE = Path(__file__).resolve().parent
TUNED_ENVS = ("CartPole-v1", "Acrobot-v1", "Pendulum-v1")
MORE_ENVS = ("surefoot/CartPoleContinuous-v0", "MountainCarContinuous-v0", "CartPole-v1")
HELD_ENVS = ("InvertedPendulum-v5", "Acrobot-v1", "Pendulum-v1")
TUNED_SEEDS, MORE_SEEDS, HELD_SEEDS = (0, 1, 2), (10, 11, 12), (30, 31, 32)
HEALTHY_TUNED = (*TUNED_ENVS, "surefoot/ContextBandit-v0", "surefoot/Corridor-v0")
HEALTHY_MORE = (
    *MORE_ENVS,
    "surefoot/Bandit-v0",
    "surefoot/Target-v0",
    "surefoot/TwoKnobs-v0",
    "surefoot/TimeLimit-v0",
    "surefoot/Masked-v0",
)
HEALTHY_HELD = (*TUNED_ENVS, "InvertedPendulum-v5", "Reacher-v5", "Hopper-v5", "LunarLander-v3")
STEPS = {
    "CartPole-v1": 60_000,
    "Acrobot-v1": 120_000,
    "Pendulum-v1": 60_000,
    "MountainCarContinuous-v0": 60_000,
    "InvertedPendulum-v5": 60_000,
    "Reacher-v5": 60_000,
    "Hopper-v5": 60_000,
    "LunarLander-v3": 80_000,
}
DEFAULT_STEPS = 100_000
FAST: dict[str, dict[str, Any]] = {
    "Pendulum-v1": {
        "gsde": False,
        "lr": "1e-3",
        "normalize_reward": True,
        "envs": 8,
        "rollout_steps": 256,
        "epochs": 10,
    },
    "MountainCarContinuous-v0": {"gsde": False, "log_std_init": 0.0},
    "InvertedPendulum-v5": {"envs": 8, "rollout_steps": 128, "epochs": 6, "minibatch_size": 256, "lr": "1e-3"},
}
"""Plain noise instead of the preset's gSDE; larger batches, so that the torch path is done in seconds."""


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
    Fault("advantage-sign", ("R26", "R11"), TORCH, flipped_advantage),
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
    Fault("noise-far", ("S15",), {"log_std_init": 4.0}, held_out=True, envs=("Pendulum-v1", "InvertedPendulum-v5")),
    Fault("old-rollouts", ("R16",), {}, old_rollouts, held_out=True),
    Fault("reloaded-now-and-then", ("R28", "R17"), {}, lambda training: reinitialised(training, 3), held_out=True),
]


def _times_lr(spec: RunSpec, factor: float) -> RunSpec:
    from surefoot.learn.schedule import value_at

    first = value_at(spec.ppo.lr, progress=0.0, updates=0)
    return replace(spec, ppo=spec.ppo.replace(lr=first * factor))


@dataclass(frozen=True)
class Case:
    """One run to make and to look at."""

    fault: Fault | None
    env: str
    seed: int
    held_out: bool

    @property
    def key(self) -> str:
        return f"{self.fault.name if self.fault else 'healthy'} {self.env} s{self.seed}"


def cases() -> list[Case]:
    """All of them. What was looked at while rules were chosen is tuned; the held-out part came after the last change."""
    found: list[Case] = []
    for fault in FAULTS:
        if fault.held_out:
            where = fault.envs or (*TUNED_ENVS, "InvertedPendulum-v5")
            found += [Case(fault, env, seed, True) for env in where for seed in HELD_SEEDS[:2]]
            continue
        for env in fault.envs or TUNED_ENVS:
            seeds = TUNED_SEEDS if env in HEALTHY_TUNED else MORE_SEEDS
            found += [Case(fault, env, seed, False) for seed in seeds]
        found += [Case(fault, env, MORE_SEEDS[0], False) for env in MORE_ENVS if not fault.envs or env in fault.envs]
        found += [Case(fault, env, HELD_SEEDS[0], True) for env in HELD_ENVS if not fault.envs or env in fault.envs]
    found += [Case(None, env, seed, False) for env in HEALTHY_TUNED for seed in TUNED_SEEDS]
    found += [Case(None, env, seed, False) for env in HEALTHY_MORE for seed in (*MORE_SEEDS, 13)]
    found += [Case(None, env, seed, True) for env in HEALTHY_HELD for seed in HELD_SEEDS]
    # Wrappers are for Gymnasium's environments.
    found = [case for case in found if not (case.fault and case.fault.wrap and case.env.startswith("surefoot/"))]
    return list({case.key: case for case in found}.values())


def spec_of(case: Case, steps: int | None) -> RunSpec:
    world = make_world(case.env, 1)
    settings = {**FAST.get(case.env, {}), **(case.fault.settings if case.fault else {}), "seed": case.seed}
    total = steps or STEPS.get(case.env, DEFAULT_STEPS if case.env.startswith("surefoot/CartPole") else 40_000)
    spec = make_spec(case.env, world.action, settings=settings, total_steps=total, eval_every=0)
    return case.fault.before(spec) if case.fault and case.fault.before else spec


def run_case(case: Case, steps: int | None = None) -> dict[str, Any]:
    """Train it, and let the doctor read its record from the first line to the last."""
    spec = spec_of(case, steps)
    with tempfile.TemporaryDirectory() as root:
        directory = RunDir(Path(root) / "run")
        directory.path.mkdir()
        world = None
        if case.fault and (wrap := case.fault.wrap) is not None:
            world = EnvsWorld([lambda: wrap(gym.make(case.env))] * spec.ppo.envs, case.env)
        training = Training(spec, world=world)
        if case.fault and case.fault.inject:
            case.fault.inject(training)
        run = create_run(directory, spec, training=training)
        begin, reason, message = time.process_time(), "finished", ""
        try:
            for _ in run.moments():
                pass
        except SurefootError as why:
            reason, message = "error", f"{type(why).__name__}: {why}"
        finally:
            run.close(reason, message)  # pyright: ignore[reportArgumentType]
        if case.fault and case.fault.name == "two-writers":
            interleave(directory.telemetry)
        return {**examined(directory.path, case), "cpu_seconds": round(time.process_time() - begin, 2)}


def interleave(path: Path) -> None:
    """As if a second process had written the second half of the record at the same time."""
    lines = path.read_bytes().splitlines(keepends=True)
    half = len(lines) // 2
    mixed = [line for pair in zip(lines[:half], lines[half : 2 * half], strict=True) for line in pair]
    path.write_bytes(b"".join(mixed))


def examined(path: Path, case: Case) -> dict[str, Any]:
    """What was found, what came first, and when the first right finding opened."""
    doctor, first, updates, named = Doctor(), None, 0, None
    right = case.fault.right if case.fault else ()
    for record in scan(path):
        told = doctor.observe(record)
        named = next((f.rule for f in doctor.findings() if f.primary), named) if told else named
        updates = record.updates if isinstance(record, UpdateRecord) else updates
        hit = next((f for f in told if f.rule in right and severity_rank(f.severity) > 0), None)
        first = first or hit
    found = doctor.findings()
    return {
        "held_out": case.held_out,
        "primary": named,
        "findings": [_short(f) for f in found],
        "updates": updates,
        "detected_at": None if first is None else first.since_update / max(updates, 1),
        "return": None if np.isnan(doctor.history.returns.smooth) else round(doctor.history.returns.smooth, 3),
        "return_at_start": _plain(doctor.history.returns.start[0]),
    }


def _short(finding: Finding) -> str:
    return f"{finding.rule} {finding.severity} {finding.status} @{finding.since_update}"


def _plain(x: float) -> float | None:
    return None if np.isnan(x) else round(float(x), 3)


def alarmed(run: dict[str, Any], least: int = 1) -> bool:
    """A finding at least this grave was ever opened."""
    names = ("info", "warn", "error", "fatal")
    return any(names.index(told.split()[1]) >= least for told in run["findings"])


def did_no_harm(key: str, run: dict[str, Any], known: dict[str, dict[str, Any]]) -> bool:
    """The run with the fault got at least four fifths as far as the healthy runs of its env did."""
    env = key.split()[1]
    well = [r for k, r in known.items() if k.startswith(f"healthy {env} ") and r["return"] is not None]
    if not well or run["return"] is None or any(r["return_at_start"] is None for r in well):
        return False
    start, end = (float(np.mean([r[name] for r in well])) for name in ("return_at_start", "return"))
    return end > start and (run["return"] - start) / (end - start) >= 0.8


def summary(known: dict[str, dict[str, Any]], part: str) -> dict[str, Any]:
    """Recall, right first cause, false alarms and time to detection over the runs of a part."""
    byname = {fault.name: fault for fault in FAULTS}
    chosen = {key: run for key, run in known.items() if part == "all" or run["held_out"] == (part == "held out")}
    sick = {key: run for key, run in chosen.items() if not key.startswith("healthy")}
    well = [run for key, run in chosen.items() if key.startswith("healthy")]
    right = [run["primary"] in byname[key.split()[0]].right for key, run in sick.items()]
    when = [run["detected_at"] for run in sick.values() if run["detected_at"] is not None]
    alarms = sum(alarmed(run, 2) for run in well)
    return {
        "faulty_runs": len(sick),
        "recall": float(np.mean([alarmed(run) for run in sick.values()])) if sick else None,
        "missed": sum(not alarmed(run) for run in sick.values()),
        "missed_but_harmless": sum(not alarmed(run) and did_no_harm(key, run, known) for key, run in sick.items()),
        "right_primary": float(np.mean(right)) if right else None,
        "wrong_cause_rate": _wrong(sick, right),
        "precision": _precision(sick.values(), alarms),
        "median_time_to_detection": float(np.median(when)) if when else None,
        "healthy_runs": len(well),
        "false_alarms": alarms,
        "false_alarms_per_20": 20.0 * alarms / len(well) if well else None,
        "warnings_per_20": 20.0 * sum(alarmed(run) for run in well) / len(well) if well else None,
    }


def _wrong(sick: dict[str, dict[str, Any]], right: list[bool]) -> float | None:
    """Of the faults that were found, the share that another cause was named for."""
    found = [hit for run, hit in zip(sick.values(), right, strict=True) if alarmed(run)]
    return 1.0 - float(np.mean(found)) if found else None


def _precision(sick: Iterable[dict[str, Any]], false_alarms: int) -> float | None:
    """Of the runs with a finding of error or worse, the share that had a fault."""
    true_alarms = sum(alarmed(run, 2) for run in sick)
    return true_alarms / (true_alarms + false_alarms) if true_alarms + false_alarms else None


def fault_rows(known: dict[str, dict[str, Any]]) -> list[tuple[str, int, int, int, list[str]]]:
    """(fault, runs, found, named first, what was named instead) of every fault that was tried."""
    rows: list[tuple[str, int, int, int, list[str]]] = []
    for fault in FAULTS:
        runs = [run for key, run in known.items() if key.startswith(fault.name + " ")]
        others = sorted({str(run["primary"]) for run in runs if run["primary"] not in fault.right})
        hits = sum(run["primary"] in fault.right for run in runs)
        rows += [(fault.name, len(runs), sum(alarmed(run) for run in runs), hits, others)] if runs else []
    return rows


def report(known: dict[str, dict[str, Any]]) -> int:
    """Print the tables; 1 if what counts is not met on the held-out part."""
    print("| fault | runs | found | named first | named instead | median share of the run until found |")
    print("|---|---|---|---|---|---|")
    for name, runs, found, hits, others in fault_rows(known):
        when = [r["detected_at"] for k, r in known.items() if k.startswith(name + " ") and r["detected_at"] is not None]
        told = f"{np.median(when):.0%}" if when else ""
        print(f"| {name} | {runs} | {found} | {hits} | {', '.join(others)} | {told} |")
    print("\n| part | faulty runs | recall | right first | healthy runs | false alarms per 20 (error or worse) |")
    print("|---|---|---|---|---|---|")
    for part in ("tuned", "held out"):
        row = summary(known, part)
        shown = (row["recall"], row["right_primary"], row["false_alarms_per_20"])
        recall, first, alarms = ("" if x is None else f"{x:.2f}" for x in shown)
        print(f"| {part} | {row['faulty_runs']} | {recall} | {first} | {row['healthy_runs']} | {alarms} |")
    row = summary(known, "held out")
    met = [row["recall"], row["right_primary"], row["false_alarms_per_20"]]
    if None in met:
        return 0
    return 0 if met[0] >= 0.9 and met[1] >= 0.8 and met[2] <= 1.0 else 1


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="only runs whose name has one of these in it (default all)")
    parser.add_argument("--part", choices=("all", "tuned", "held"), default="all")
    parser.add_argument("--steps", type=int, help="env steps of each run (default by env)")
    parser.add_argument("--seeds", type=int, help="at most this many seeds of each")
    parser.add_argument("--out", type=Path, default=HERE / "results/doctor.json")
    parser.add_argument("--fresh", action="store_true")
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    known: dict[str, Any] = {}
    if args.out.exists() and not args.fresh:
        known = json.loads(args.out.read_text())["runs"]
    for case in cases():
        wanted = not args.words or any(word in case.key for word in args.words)
        if args.part != "all" and case.held_out != (args.part == "held"):
            continue
        if args.seeds is not None and case.seed % 10 >= args.seeds:
            continue
        if not wanted or case.key in known:
            continue
        known[case.key] = run_case(case, args.steps)
        row = known[case.key]
        told = f"first {row['primary']}, {row['return_at_start']} → {row['return']}, {row['cpu_seconds']} s"
        print(f"{case.key}: {told}; {'; '.join(row['findings'])}", file=sys.stderr, flush=True)
        args.out.parent.mkdir(exist_ok=True)
        totals = {part: summary(known, part) for part in ("held out", "tuned")}
        text = json.dumps({"command": "make bench-doctor", "totals": totals, "runs": known}, indent=1)
        args.out.write_text(text + "\n")
    return report(known)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        sys.exit(main())
