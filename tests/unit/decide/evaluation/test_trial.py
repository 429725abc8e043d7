"""Tests of `surefoot.decide.evaluation.trial`."""

from __future__ import annotations

from pathlib import Path

import pytest

from surefoot.decide.core.agent import Agent
from surefoot.decide.encoders.encoder import HashingEncoder
from surefoot.decide.evaluation.datasets import Dataset
from surefoot.decide.evaluation.trial import decisions_of, encoder_and_chooser, load_agent, replay, run_trial
from surefoot.errors import DecisionError, RunNotFound


def data(count: int = 20) -> Dataset:
    texts = [f"{word} please {i}" for i in range(count // 2) for word in ("rain", "music")]
    names = ["weather", "songs"]
    right = [0, 1] * (count // 2)
    return Dataset(texts=texts, right=right, names=names, descriptions=["rain", "music"], candidates=None)


def test_every_query_is_decided_once_and_logged(tmp_path: Path):
    progress = list(run_trial(Agent(HashingEncoder(32)), data(), tmp_path, seed=3))
    rows = decisions_of(tmp_path)
    assert sorted(row["text"] for row in rows) == sorted(data().texts)
    assert progress[-1].decisions == 20
    assert progress[-1].success == pytest.approx(sum(row["reward"] for row in rows) / 20)
    assert all(row["reward"] == float(row["chosen"] == row["right"]) for row in rows)


def test_the_seed_decides_the_order_and_count_the_number(tmp_path: Path):
    orders = []
    for run, seed in (("a", 1), ("b", 1), ("c", 2)):
        list(run_trial(Agent(HashingEncoder(32)), data(), tmp_path / run, count=8, seed=seed))
        orders.append([row["text"] for row in decisions_of(tmp_path / run)])
    assert len(orders[0]) == 8
    assert orders[0] == orders[1] != orders[2]


def test_a_saved_trial_is_loaded_with_its_options(tmp_path: Path):
    list(run_trial(Agent(HashingEncoder(32)), data(), tmp_path))
    assert encoder_and_chooser(tmp_path) == ("hashing-1-32", "replay")
    agent = Agent(HashingEncoder(32))
    load_agent(agent, tmp_path)
    assert set(agent.options.names) == {"weather", "songs"}


def test_a_directory_without_a_finished_trial_is_reported(tmp_path: Path):
    with pytest.raises(RunNotFound, match="holds no trial"):
        encoder_and_chooser(tmp_path)
    with pytest.raises(DecisionError, match="has no decisions"):
        replay(Agent(HashingEncoder(32)), tmp_path)
