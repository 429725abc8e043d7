"""Scenarios and replay samples of the town's verbs."""

from __future__ import annotations

from pathlib import Path

import pytest

from surefoot.cli.main import main
from surefoot.cli.verbs.town.samples import TownOptions, load, print_samples, read_samples
from surefoot.errors import ReplayError


def test_a_manifest_and_its_directory_give_the_same_samples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["town", "samples", "-o", str(tmp_path)]) == 0
    one = read_samples(tmp_path / "replay_manifest.json", TownOptions())
    batched = read_samples(tmp_path / "replay_manifest.json", TownOptions(replay_batch_size=2))
    assert len(one) == len(one.source)
    assert len(batched) == -(-len(one) // 2)
    assert len(read_samples(tmp_path, TownOptions())) >= len(one)
    capsys.readouterr()
    assert print_samples(one) == 0
    assert f"{len(one.source)} samples in {len(one)} batches are valid" in capsys.readouterr().out


def test_a_directory_without_a_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match="has no .*_manifest.json; `surefoot town capture` writes one"):
        read_samples(tmp_path, TownOptions())


def test_a_scenario_is_loaded_by_name() -> None:
    assert load("queue_conflict").name == "queue_conflict"
