"""A worker process and its pipe: heads, failures, and how the end of a process is reported."""

from __future__ import annotations

import os
import signal

import pytest

from surefoot.envs.workers.shared_memory import new_memory
from surefoot.envs.workers.worker_process import (
    Failure,
    WorkerProcess,
    WorkerTraceback,
    dismiss,
    raise_failure,
    read_head,
)
from surefoot.errors import EnvError


def test_a_head_may_come_in_two_pieces_and_a_closed_pipe_is_the_end():
    ours, theirs = os.pipe()
    os.write(theirs, b"\x02\x07")
    assert read_head(ours) == b"\x02\x07"
    os.write(theirs, b"\x02")
    os.close(theirs)
    with pytest.raises(EOFError):
        read_head(ours)
    os.close(ours)


def test_a_failure_is_raised_with_the_traceback_of_the_worker():
    raise_failure("an answer")
    with pytest.raises(EnvError, match="broken") as caught:
        raise_failure(Failure(EnvError("broken"), "line 7"))
    assert isinstance(caught.value.__cause__, WorkerTraceback)
    assert str(caught.value.__cause__) == "line 7"


def test_a_worker_answers_failures_and_says_how_it_was_ended():
    memory = new_memory()
    worker = WorkerProcess("surefoot.envs.workers.worker", memory)
    worker.ask("state")
    answer = worker.receive(60.0)
    assert isinstance(answer, Failure)
    assert "a worker failed: AssertionError" in str(answer.error)
    os.kill(worker.process.pid, signal.SIGKILL)
    worker.process.wait()
    assert worker.end(silent=False) == "was ended by SIGKILL"
    other = WorkerProcess("surefoot.envs.workers.worker", memory)
    dismiss([other])
    assert other.process.poll() is not None
    os.close(memory)
