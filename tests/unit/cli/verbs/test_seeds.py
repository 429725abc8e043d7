"""The command that trains one of several seeds."""

from __future__ import annotations

from pathlib import Path

import pytest

from surefoot.cli.main import read_arguments
from surefoot.cli.verbs.seeds import command_for
from surefoot.cli.verbs.train import TrainArgs


@pytest.mark.parametrize(
    ("jobs", "workers", "expected"), [(1, None, None), (1, "2", "2"), (2, None, "0"), (2, "auto", "0"), (2, "1", "1")]
)
def test_parallel_seeds_have_no_env_workers_by_default(jobs: int, workers: str | None, expected: str | None) -> None:
    chosen = () if workers is None else (f"workers={workers}",)
    command = command_for(TrainArgs(env="Hopper-v5", seeds=4, jobs=jobs, set=chosen), 3, "run")
    passed = [text for text in command if text.startswith("workers=")]
    assert passed == ([] if expected is None else [f"workers={expected}"])


def test_every_option_of_the_parent_reaches_the_child() -> None:
    args = TrainArgs(
        env="CartPole-v1",
        steps=500,
        set=("lr=0.1", "record_minibatches=0.5", "overlap=true", "workers=1"),
        telemetry="off",
        ppo_log=Path("log.jsonl"),
        track=("tensorboard",),
        doctor="full",
        rollout_workers="local:2",
    )
    child = read_arguments("train", command_for(args, 7, "run-s7")[4:])
    assert (child.seed, child.name, child.ppo_log) == (7, "run-s7", Path("log-s7.jsonl"))
    same = (
        "env",
        "steps",
        "set",
        "telemetry",
        "track",
        "doctor",
        "rollout_workers",
    )
    for name in same:
        assert getattr(child, name) == getattr(args, name)
