"""Rollouts by processes of this machine."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
from scale_backends import a_spec, remote, weights_of

from surefoot.errors import EnvError
from surefoot.scale.backend import Piece
from surefoot.scale.local_backend import local_backend
from surefoot.scale.remote_training import RemoteTraining
from surefoot.train.rundir.resume_check import fingerprint


def test_a_spare_process_takes_the_place_of_a_lost_one_unless_it_is_lost_itself(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("surefoot.scale.rollout_pool.SETTLED", 0.0)
    spec = a_spec()
    backend: Any = local_backend(spec, 1, timeout=20.0)
    everyone: set[int] = set()

    def turn() -> Piece:
        backend.ask()
        (piece,) = backend.receive()
        everyone.update((*backend.processes, backend.pool.spare.process))
        return piece

    try:
        backend.publish(weights_of(spec), 0)
        assert turn().serial == "0.0.0"
        spare = backend.pool.spare.process
        os.kill(backend.processes[0], signal.SIGKILL)
        piece = turn()
        assert (piece.serial, piece.began_anew) == ("0.1.0", True)
        assert backend.processes == [spare]
        assert len(backend.take_losses()) == 1
        os.kill(backend.pool.spare.process, signal.SIGKILL)
        os.kill(spare, signal.SIGKILL)
        assert turn().serial == "0.3.0"
        assert len(backend.take_losses()) == 2
    finally:
        backend.close()
    for process in everyone:  # nobody stays
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def test_processes_return_the_digits_of_the_same_workers_in_this_process():
    spec = a_spec(rollouts="local:2", total_steps=240)
    remote_run, local_run = RemoteTraining(spec), remote(spec)
    try:
        assert len(list(remote_run)) == len(list(local_run)) == 3
        assert fingerprint(remote_run.policy.state_dict()) == fingerprint(local_run.policy.state_dict())
    finally:
        remote_run.close()
        local_run.close()


def test_an_error_of_the_env_is_raised_and_not_retried(tmp_path: Any):
    spec = a_spec(env="NoSuchEnv-v0")
    with pytest.raises(EnvError, match="NoSuchEnv"):
        local_backend(spec, 1)
