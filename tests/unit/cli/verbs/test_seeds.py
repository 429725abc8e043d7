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
    command = command_for(TrainArgs(env="Hopper-v5", seeds=4, jobs=jobs, env_workers=workers), 3, "run")
    passed = command[command.index("--env-workers") + 1] if "--env-workers" in command else None
    assert passed == expected


def test_every_option_of_the_parent_reaches_the_child() -> None:
    args = TrainArgs(
        env="CartPole-v1",
        steps=500,
        set=("lr=0.1",),
        telemetry="off",
        record_minibatches=0.5,
        ppo_log=Path("log.jsonl"),
        track=("tensorboard",),
        env_workers="1",
        doctor="full",
        rollout_workers="local:2",
        overlap=True,
    )
    child = read_arguments("train", command_for(args, 7, "run-s7")[4:])
    assert (child.seed, child.name, child.ppo_log) == (7, "run-s7", Path("log-s7.jsonl"))
    same = (
        "env",
        "steps",
        "set",
        "telemetry",
        "record_minibatches",
        "track",
        "env_workers",
        "doctor",
        "rollout_workers",
    )
    for name in (*same, "overlap"):
        assert getattr(child, name) == getattr(args, name)
