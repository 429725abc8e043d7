"""Faults that were written down, with the rules that would be right, before any rule was tried on them.

Half of them (`OPENED`) may be looked at to improve rules after their first results were recorded; the others may not.
A rule named here that did not exist then (E15, E16, S18 to S20) is one that would have had to exist.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch

from surefoot.learn.schedule import Linear, Piecewise, value_at
from surefoot.train.spec import RunSpec
from surefoot.train.training import Training
from workloads import faulty_envs as faulty
from workloads import unseen_envs as unseen
from workloads.run_faults import TORCH, Fault, on_rollout

CHOICES, NUMBERS = ("CartPole-v1", "Acrobot-v1"), ("Pendulum-v1", "InvertedPendulum-v5")


def on_batch(change: Callable[[Any], None]) -> Callable[[Training], None]:
    """A fault that spoils the batch after advantages and targets were computed; torch only."""

    def inject(training: Training) -> None:
        steps = training.learner.steps
        prepare = steps.prepare

        def wrong(rollout: Any, valid: Any) -> Any:
            batch, moments = prepare(rollout, valid)
            change(batch)
            return batch, moments

        steps.prepare = wrong  # pyright: ignore[reportAttributeAccessIssue]

    return inject


def transposed_advantage(batch: Any) -> None:
    """As if [T, N] had been read as [N, T]."""
    flat = batch.advantage.flatten()
    streams = 8
    batch.advantage.copy_(flat.reshape(-1, streams).T.reshape(batch.advantage.shape))


def shuffled_targets(batch: Any) -> None:
    flat = batch.target.flatten()
    batch.target.copy_(flat[torch.randperm(len(flat))].reshape(batch.target.shape))


def log_prob_of_neighbour(training: Training, rollout: Any) -> None:
    rollout.log_prob[:] = np.roll(rollout.log_prob, 1, axis=1)


def reward_of_neighbour(training: Training, rollout: Any) -> None:
    rollout.reward[:] = np.roll(rollout.reward, 1, axis=1)


def late_ends(training: Training, rollout: Any) -> None:
    """Terminations are marked one step late."""
    rollout.terminated[:] = np.roll(rollout.terminated, 1, axis=0)


def learned_twice(training: Training) -> None:
    """Every rollout is used by two updates in a row."""
    collect, kept = training.collector.collect, list[Any]()

    def again(policy_version: int = 0) -> Any:
        if kept:
            return kept.pop()
        kept.append(collect(policy_version))
        return kept[0]

    training.collector.collect = again  # pyright: ignore[reportAttributeAccessIssue]


def noisy_weights(training: Training) -> None:
    """Noise is added to the weights before each rollout."""
    collect, generator = training.collector.collect, torch.Generator().manual_seed(5)

    def noisy(policy_version: int = 0) -> Any:
        with torch.no_grad():
            for x in training.policy.parameters():
                x.add_(0.05 * torch.randn(x.shape, generator=generator))
        return collect(policy_version)

    training.collector.collect = noisy  # pyright: ignore[reportAttributeAccessIssue]


def _lr(spec: RunSpec, schedule: Callable[[float], Any]) -> RunSpec:
    return replace(spec, ppo=spec.ppo.replace(lr=schedule(value_at(spec.ppo.lr, progress=0.0, updates=0))))


def _obs(change: faulty.Change) -> faulty.Wrap:
    return lambda env: faulty.ChangedObservation(env, change)


def _neighbours() -> faulty.Wrap:
    # A new board per run: `wrap` is called once per stream, and the streams of a run are made one after the other.
    board: list[Any] = []

    def wrap(env: Any) -> Any:
        if env.spec is not None and len(board) >= 8:
            board.clear()
        return unseen.NeighbourObservation(env, board)

    return wrap


NEW_FAULTS = [
    Fault("obs-of-last-episode", ("E08", "E07"), wrap=lambda env: unseen.LastEpisode(env, "obs")),
    Fault("obs-of-neighbour", ("E08", "E07"), wrap=_neighbours()),
    # Rules that did not exist when this list was written, and that name just this fault, were added to it when they were
    # made: E17 to E20, E22, and R29 to R31. No other rule was added to any fault.
    Fault("obs-order-by-stream", ("E07", "E18"), wrap=partial(unseen.permuted_by_stream, counter=[0])),
    Fault("obs-integer", ("E01", "E02", "E03", "E20"), wrap=_obs(unseen.integer)),
    Fault("obs-dropouts", ("E07", "E17"), wrap=_obs(unseen.dropouts)),
    Fault("obs-tiny", ("R22S",), wrap=_obs(unseen.tiny)),
    Fault("action-sticky", ("E08", "E09"), wrap=lambda env: unseen.StickyAction(env, 0.9)),
    Fault("action-flipped-by-episode", ("E08", "E19"), wrap=unseen.FlippedByEpisode),
    Fault("action-weak", ("E08",), wrap=lambda env: faulty.ChangedAction(env, unseen.weak_action), envs=NUMBERS),
    Fault(
        "reward-positive-only",
        ("R10",),
        wrap=lambda env: faulty.ChangedReward(env, lambda r, rng: max(r, 0.0)),
        envs=("Acrobot-v1", "Pendulum-v1"),
    ),
    Fault("reward-of-last-episode", ("E10",), wrap=lambda env: unseen.LastEpisode(env, "reward")),
    Fault("ends-after-5", ("E15",), wrap=lambda env: unseen.TruncatedAfter(env, 5)),
    Fault("end-is-truncation", ("E16", "R10"), wrap=unseen.EndIsTruncation, envs=(*CHOICES, "InvertedPendulum-v5")),
    Fault("reset-missing", ("R21S", "E22"), wrap=unseen.NoReset, envs=("CartPole-v1", "InvertedPendulum-v5")),
    Fault("ends-never", ("R21N",), wrap=unseen.NoEnd),
    Fault("advantage-transposed", ("R26", "R11", "R29"), TORCH, on_batch(transposed_advantage)),
    Fault("targets-shuffled", ("R08", "R09", "R29"), TORCH, on_batch(shuffled_targets)),
    Fault("log-prob-of-neighbour", ("R02",), inject=on_rollout(log_prob_of_neighbour)),
    Fault("reward-of-neighbour", ("E10",), inject=on_rollout(reward_of_neighbour)),
    Fault("ends-one-late", ("E13", "R31"), inject=on_rollout(late_ends)),
    Fault("rollout-learned-twice", ("R16", "R02", "R17"), inject=learned_twice),
    Fault("weights-noise", ("R28",), inject=noisy_weights),
    Fault("updates-few", ("S12",), {"rollout_steps": 4096, "envs": 8}),
    Fault("lr-rises", ("R03X", "R03", "S01"), before=partial(_lr, schedule=lambda x: Linear(x, 300.0 * x))),
    Fault("lr-ends-early", ("S18",), before=partial(_lr, schedule=lambda x: Piecewise(((0.0, x), (0.05, 1e-9))))),
    Fault("adaptive-kl-tiny", ("S19",), {"adaptive_kl": 1e-6}),
    Fault("noise-near", ("S15",), {"log_std_init": -8.0}, envs=NUMBERS),
    Fault("value-clip-tiny", ("S20",), {"value_clip": 1e-4}),
    Fault("obs-clip-tiny", ("E06", "R22S", "S21"), {"normalize_obs": True, "obs_clip": 1e-3}),
]
# Half of them may be looked at later. A rule was written for some of the others too, by their description: they count as
# opened, because a rule that was made for a fault says nothing about faults that nobody thought of.
RULED = ("obs-integer", "action-flipped-by-episode", "ends-after-5", "reset-missing", "advantage-transposed",
         "ends-one-late", "adaptive-kl-tiny", "value-clip-tiny")  # fmt: skip
OPENED = frozenset({*(fault.name for fault in NEW_FAULTS[::2]), *RULED})
