import json
from pathlib import Path
from typing import Any

import pytest

from surefoot.compat.townlet import records as old
from surefoot.telemetry.reader import LineProblem, read_line

SAMPLES = Path(__file__).parents[3] / "samples" / "telemetry"


def sample(version: str, stem: str = "minimal") -> dict[str, Any]:
    return json.loads((SAMPLES / f"v{version}" / f"{stem}.ndjson").read_text().splitlines()[0])


def without(line: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: x for key, x in line.items() if key not in keys}


@pytest.mark.parametrize("version", old.VERSIONS)
def test_the_four_numbers_demanded_later_may_be_missing(version: old.Version):
    line = sample(version)
    assert not set(old.LATE) & set(line)
    assert old.errors(line, version) == []


@pytest.mark.parametrize("version", old.VERSIONS)
@pytest.mark.parametrize("key", [*old.BASE, *old.CONFLICT])
def test_every_base_and_conflict_number_is_demanded(version: old.Version, key: str):
    (said,) = old.errors(without(sample(version), key), version)
    assert said.startswith(f"{key} missing")


def test_1_1_brought_eleven_numbers_and_a_mode():
    assert len(old.NEW_IN_1_1) == 11
    for key in old.NEW_IN_1_1:
        (said,) = old.errors(without(sample("1.1"), key), "1.1")
        assert said == f"{key} missing; 1.1 demands a finite number for each"
    (said,) = old.errors(without(sample("1.1"), "data_mode"), "1.1")
    assert said == "data_mode missing; 1.1 demands one of replay, rollout, mixed"


def test_1_0_must_not_have_what_came_with_1_1():
    (said,) = old.errors(sample("1.0") | {"cycle_id": 0.0}, "1.0")
    assert "came with 1.1" in said


@pytest.mark.parametrize("wrong", [True, None, "0.5", [0.5], 10**400])
def test_what_is_no_number_is_told_with_its_value(wrong: Any):
    (said,) = old.errors(sample("1.1") | {"loss_total": wrong}, "1.1")
    assert said.startswith("loss_total is ")
    assert len(said) < 100


def test_only_1_2_refuses_unknown_keys():
    extra = {"moon": 1.0}
    assert old.errors(sample("1.1") | extra, "1.1") == []
    assert old.line_warnings(sample("1.1") | extra, "1.1") == ["moon unknown to 1.1"]
    assert "moon unknown" in old.errors(sample("1.2") | extra, "1.2")[0]
    assert old.errors(sample("1.2") | {"conflict.moon": 1.0}, "1.2") == []


def test_a_baseline_is_looked_at_only_when_it_is_whole():
    line = sample("1.0") | dict.fromkeys(old.BASELINE, 1.0)
    assert old.errors(line, "1.0") == []
    assert old.errors(line | {"baseline_reward_mean": "x"}, "1.0") != []
    partial = without(line, "baseline_sample_count") | {"baseline_reward_mean": "x"}
    assert old.errors(partial, "1.0") == []
    assert "without baseline_sample_count" in old.line_warnings(partial, "1.0")[0]


def test_a_correlation_of_seven_is_odd():
    assert "must be between -1 and 1" in old.line_warnings(sample("1.1") | {"reward_advantage_corr": 7.0}, "1.1")[0]


@pytest.mark.parametrize(
    ("claim", "version"),
    [(1.1, "1.1"), ("1.1", "1.1"), (1, "1.0"), (1.0, "1.0"), (1.2, "1.2"), (1.15, None), (2.0, None), (True, None)],
)
def test_a_version_may_be_a_number_or_a_word(claim: Any, version: str | None):
    assert old.version_of({"telemetry_version": claim}) == version


def test_a_log_from_before_versions_is_1_0():
    line = sample("1.0", "unversioned")
    assert old.version_of(line) == "1.0"
    assert "no telemetry_version" in old.line_warnings(line, "1.0")[0]


def test_an_unknown_version_names_the_known():
    problem = read_line("x", 3, b'{"telemetry_version": 1.7}')
    assert isinstance(problem, LineProblem)
    assert str(problem) == "x:3: not a record: telemetry_version 1.7 is unknown; known versions are 1.0, 1.1, 1.2"


def test_an_anneal_goes_to_numbers_and_words():
    line = sample("1.2", "full")
    update = old.migrate(line, "1.2", number=4, before=2.0)
    assert update.labels["anneal_stage"] == "bc"
    assert (update.m["anneal_bc_passed"], update.m["anneal_bc_accuracy"]) == (1.0, 0.93)
    assert "anneal_loss_baseline" not in update.m
    assert (update.seq, update.updates, update.t) == (4, 4, 2.0 + line["epoch_duration_sec"])


def test_what_1_0_did_not_measure_stays_absent():
    update = old.migrate(sample("1.0"), "1.0", number=1)
    assert not set(old.NEW_IN_1_1) & set(update.m)
    assert update.seconds == {}
