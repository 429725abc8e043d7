"""Training with rollouts of a backend's workers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scale_backends import InProcess, a_spec, remote

from surefoot.errors import ConfigError
from surefoot.scale.backend import Piece
from surefoot.train.rundir.resume_check import fingerprint


@pytest.mark.parametrize("overlap", [False, True])
def test_a_remote_run_resumes_from_its_state_to_the_last_bit(overlap: bool):
    spec = a_spec(overlap=overlap, env="Pendulum-v1")
    straight, broken = remote(spec), remote(spec)
    list(straight)
    next(broken), next(broken)
    saved = broken.state()
    resumed = remote(spec)
    resumed.set_state(saved)
    list(resumed)
    assert fingerprint(resumed.state()) == fingerprint(straight.state())


def test_with_overlap_every_rollout_has_a_policy_lag_of_1():
    spec = a_spec(overlap=True)
    training = remote(spec)
    reports = list(training)
    assert [report.policy_lag for report in reports] == [0, *[1] * (len(reports) - 1)]
    assert all(report.effective_sample_size > 0.5 for report in reports)


def test_a_lag_beyond_the_bound_is_dropped_and_counted():
    spec = a_spec(overlap=True, max_policy_lag=1)
    training = remote(spec)
    next(training)
    training.learner.updates += 2  # two updates that the workers know nothing of
    report = next(training)
    assert report.skipped_reason is not None
    assert report.samples == 0


def test_a_repeated_piece_is_learned_from_once():
    spec = a_spec()
    backend = InProcess(spec, 2)
    training = remote(spec, backend=backend)
    next(training)
    steps, first = training.env_steps, backend.pieces[0]
    kept = replace(first, rollout=replace(first.rollout, valid=first.rollout.valid.copy()))

    def receive() -> list[Piece]:
        return [kept, backend.pieces[1]]

    backend.receive = receive
    report = next(training)
    assert report.stats["pieces_twice"] == 1.0
    assert report.samples == 16 * 2  # the other worker's two streams
    assert training.env_steps == steps + 16 * 2


def test_the_reward_scale_is_that_of_all_streams_together():
    spec = a_spec(env="Pendulum-v1")
    apart, alone = remote(spec, 5), remote(spec, 1)
    next(apart), next(alone)
    assert apart.collector.scaler.count == alone.collector.scaler.count == 16 * 5
    assert apart.collector.scaler.running.shape == (5,)


def test_a_replaced_worker_restarts_its_discounted_returns():
    spec = a_spec(env="Pendulum-v1")
    backend = InProcess(spec, 2)
    training = remote(spec, backend=backend)
    next(training)
    before = training.collector.scaler.running.copy()
    assert (before != 0.0).all()
    scale = training.collector.scaler.scale
    seen: list[np.ndarray] = []

    def watched(*arguments: Any) -> np.ndarray:
        seen.append(training.collector.scaler.running.copy())
        return scale(*arguments)

    training.collector.scaler.scale = watched
    plain = backend.receive
    backend.receive = lambda: [replace(plain()[0], began_anew=True), plain()[1]]
    report = next(training)
    assert report.stats["worker_restarts"] == 1.0
    assert np.array_equal(seen[0], np.where([True, True, True, False, False], 0.0, before))


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"temperature": 2.0}, "temperature"), ({"max_policy_lag": 0, "overlap": True}, "max_policy_lag")],
)
def test_settings_that_workers_do_not_support_are_refused(settings: dict[str, Any], message: str):
    with pytest.raises(ConfigError, match=message):
        remote(a_spec(**settings))


def test_a_run_is_not_resumed_with_another_number_of_workers():
    saved = remote(a_spec()).state()
    with pytest.raises(ConfigError, match="has rollouts of 2 workers, but there are 1 now"):
        remote(a_spec(), 1).set_state(saved)
