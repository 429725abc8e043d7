"""Scenarios and replay samples of the town's verbs."""

from __future__ import annotations

from pathlib import Path

import pytest

from surefoot.cli.main import main
from surefoot.cli.verbs.town.samples import TownOptions, load, print_samples, read_samples
from surefoot.errors import ReplayError
from surefoot.telemetry.reader import read_all
from surefoot.telemetry.schema import UpdateRecord


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


def test_the_sample_log_is_valid_and_has_both_kinds_of_updates(tmp_path: Path) -> None:
    assert main(["town", "samples", "-o", str(tmp_path)]) == 0
    log = read_all(tmp_path / "ppo_conflict_telemetry.jsonl")
    assert log.problems == []
    ticks = [record.m["rollout_ticks"] for record in log.records if isinstance(record, UpdateRecord)]
    assert ticks == [40.0, 40.0, 0.0, 0.0] * 2
    assert main(["telemetry", "validate", str(tmp_path / "ppo_conflict_telemetry.jsonl"), "--strict"]) == 0


def test_one_sample_is_read_with_its_own_metadata_or_other(tmp_path: Path) -> None:
    assert main(["town", "samples", "-o", str(tmp_path)]) == 0
    sample = next(tmp_path.glob("*.npz"))
    assert len(read_samples(sample, TownOptions())) == 1
    moved = sample.with_suffix(".json").rename(tmp_path / "elsewhere.json")
    assert len(read_samples(sample, TownOptions(replay_meta=str(moved)))) == 1
    with pytest.raises(ReplayError, match="there is no metadata"):
        read_samples(sample, TownOptions())


def test_a_directory_without_a_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match="has no .*_manifest.json; `surefoot town capture` writes one"):
        read_samples(tmp_path, TownOptions())


def test_a_scenario_is_loaded_by_name() -> None:
    assert load("queue_conflict").name == "queue_conflict"
