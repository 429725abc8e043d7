"""Every version ever published keeps its samples, and today's reader reads them all. Add samples; never change one."""

import json
from pathlib import Path

import pytest

from surefoot.telemetry.reader import load_curves, read_all
from surefoot.telemetry.schema import EndRecord, EventRecord, Record, UpdateRecord

SAMPLES = Path(__file__).parents[2] / "samples" / "telemetry"
FILES = sorted(SAMPLES.glob("v*/*.ndjson"))
WHOLE = [file for file in FILES if file.stem in ("minimal", "full", "unversioned")]


def name(file: Path) -> str:
    return f"{file.parent.name}/{file.stem}"


def kinds(records: list[Record]) -> list[str]:
    return [type(record).__name__ for record in records]


def test_each_version_has_its_four_samples():
    versions = {file.parent.name for file in FILES}
    assert versions >= {"v1.0", "v1.1", "v1.2", "v2.0"}
    for version in versions:
        assert {file.stem for file in FILES if file.parent.name == version} >= {"minimal", "full", "crash", "nan"}


@pytest.mark.parametrize("file", WHOLE, ids=name)
def test_whole_samples_are_read_to_the_last_line(file: Path):
    reading = read_all(file)
    assert reading.problems == []
    assert len(reading.records) == len(file.read_text().splitlines())
    assert any(isinstance(record, UpdateRecord) for record in reading.records)


@pytest.mark.parametrize("file", [f for f in FILES if f.stem == "crash"], ids=name)
def test_a_crash_loses_its_torn_line_and_nothing_else(file: Path):
    reading = read_all(file)
    assert len(reading.records) == len(file.read_text().splitlines()) - 1
    (problem,) = reading.problems
    assert (problem.line, "torn" in problem.message) == (len(reading.records) + 1, True)
    assert not any(isinstance(record, EndRecord) for record in reading.records)


@pytest.mark.parametrize("file", [f for f in FILES if f.stem == "nan" and "v1" in f.parent.name], ids=name)
def test_nan_in_an_old_log_is_told_with_its_line(file: Path):
    assert [problem.line for problem in read_all(file).problems] == [2, 3]


def test_nan_in_the_record_is_read_as_such():
    reading = read_all(SAMPLES / "v2.0" / "nan.ndjson")
    assert reading.problems == []
    update = next(record for record in reading.records if isinstance(record, UpdateRecord))
    assert (update.nonfinite["m.loss"], update.nonfinite["m.grad_norm"]) == ("nan", "inf")


def test_the_full_sample_has_every_kind():
    records = read_all(SAMPLES / "v2.0" / "full.ndjson").records
    assert set(kinds(records)) == {
        "HeaderRecord",
        "UpdateRecord",
        "MinibatchRecord",
        "EpisodeRecord",
        "EvaluationRecord",
        "EventRecord",
        "FindingRecord",
        "EndRecord",
    }
    assert [record.name for record in records if isinstance(record, EventRecord)] == ["checkpoint"]


def test_the_numbers_of_an_old_log_come_under_todays_names():
    file = SAMPLES / "v1.1" / "full.ndjson"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    updates = load_curves(file).updates
    for theirs, ours in (
        ("loss_policy", "policy_loss"),
        ("loss_total", "loss"),
        ("adv_std", "advantage_std"),
        ("kl_divergence", "kl_divergence"),
        ("queue_conflict_events", "queue_conflict_events"),
        ("conflict.rivalry_max_mean_avg", "conflict.rivalry_max_mean_avg"),
    ):
        assert updates[ours].tolist() == [line[theirs] for line in lines]
    assert updates.env_steps.tolist() == [line["steps"] for line in lines]
    assert updates["seconds.epoch"].sum() == pytest.approx(sum(line["epoch_duration_sec"] for line in lines))
    (first, *_) = (r for r in read_all(file).records if isinstance(r, UpdateRecord))
    assert first.labels == {"data_mode": lines[0]["data_mode"]}
