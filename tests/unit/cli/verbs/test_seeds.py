"""The command line that each of several seeds is trained with."""

from __future__ import annotations

from pathlib import Path

import pytest

from surefoot.cli.verbs.seeds import _command
from surefoot.cli.verbs.train import TrainArgs


@pytest.mark.parametrize(
    ("jobs", "said", "handed_on"), [(1, None, None), (1, "2", "2"), (2, None, "0"), (2, "auto", "0"), (2, "1", "1")]
)
def test_seeds_side_by_side_have_no_workers_unless_told(jobs: int, said: str | None, handed_on: str | None) -> None:
    command = _command(TrainArgs(env="Hopper-v5", seeds=4, jobs=jobs, workers=said), 3, "run", Path("runs"))
    found = command[command.index("--workers") + 1] if "--workers" in command else None
    assert found == handed_on
