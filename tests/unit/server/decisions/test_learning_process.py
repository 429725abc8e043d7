"""The learning process: whoever asks gets the answer to what was asked, also when two ask at once."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from surefoot.data.rollout import Rollout
from surefoot.server.decisions.learning_process import LearningProcess
from surefoot.server.schema import NewPolicy


def declared(name: str) -> NewPolicy:
    return NewPolicy(name=name, actions=["a", "b"], embedding_size=3)


def one_step() -> Rollout:
    """Too little to learn from: the learner says so."""
    step, no = np.zeros((1, 1)), np.zeros((1, 1), bool)
    return Rollout(
        obs={"obs": np.zeros((1, 1, 3), np.float32)},
        action=np.zeros((1, 1), np.int64),
        log_prob=step - 0.7,
        value=step,
        next_value=step,
        reward=step,
        terminated=~no,
        truncated=no,
        start=~no,
        valid=~no,
        policy_version=np.zeros((1, 1), np.int64),
    )


def test_two_who_ask_at_once_are_each_told_their_own(tmp_path):
    with contextlib.closing(LearningProcess(tmp_path)) as apprentice, ThreadPoolExecutor(6) as threads:
        assert apprentice.ask(declared("learns"), None).error == ""
        refused = [threads.submit(apprentice.ask, declared("learns"), one_step()) for _ in range(12)]
        made = [threads.submit(apprentice.ask, declared(f"new{k}"), None) for k in range(6)]
        assert all("fewer than min_samples" in job.result().error for job in refused)
        assert [job.result().error for job in made] == [""] * 6


def test_nothing_is_started_after_the_end(tmp_path):
    apprentice = LearningProcess(tmp_path)
    apprentice.close()
    assert "closing" in apprentice.ask(declared("late"), None).error
    assert not np.any([path.name == "late" for path in tmp_path.iterdir()])
