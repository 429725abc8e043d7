import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from surefoot.telemetry.export.summary import Extreme, as_markdown, as_text, summarise
from surefoot.telemetry.schema import Episodes
from surefoot.telemetry.writer import Recorder

SAMPLES = Path(__file__).parents[3] / "samples" / "telemetry"


@pytest.fixture
def run(tmp_path: Path, open_recorder: Callable[..., Recorder], clock: Any) -> Path:
    with open_recorder() as recorder:
        recorder.header(env="CartPole-v1", seed=1, config={})
        for number, loss in enumerate([5.0, 1.0, math.nan, 3.0], 1):
            clock.now += 1
            returns = Episodes.of([10.0 * number], [10])
            recorder.update(env_steps=64 * number, updates=number, m={"loss": loss, "lr": 0.1}, episodes=returns)
        recorder.finding(rule="R07", severity="info", title="a remark")
        recorder.finding(rule="R03", severity="warn", title="too far", since_update=2, patch={"lr": 0.01})
        recorder.finding(rule="R07", severity="info", title="a remark", status="resolved")
    return tmp_path


def test_extremes_come_with_their_update(run: Path):
    found = summarise(run)
    assert found.extremes["loss"] == Extreme(1.0, 2, 5.0, 1)
    assert (found.rows, found.updates, found.env_steps, found.seconds) == (4, (1, 4), (64, 256), 4.0)
    assert found.latest["loss"] == 3.0
    assert found.latest["episodes.return_mean"] == 40.0


def test_the_last_few_are_looked_at_alone(run: Path):
    found = summarise(run, last=2)
    assert (found.rows, found.updates) == (2, (3, 4))
    assert found.extremes["loss"] == Extreme(3.0, 4, 3.0, 4)


def test_a_finding_is_told_as_it_last_was(run: Path):
    found = summarise(run)
    assert [(f["rule"], f["status"]) for f in found.findings] == [("R03", "open"), ("R07", "resolved")]
    text = as_text(found)
    assert "R03 warn: too far since update 2 → --set lr=0.01" in text
    assert "R07 info: a remark (resolved)" in text


def test_a_range_of_several_updates_counts(tmp_path: Path, open_recorder: Callable[..., Recorder]):
    recorder = open_recorder(updates_per_second=1e-9)
    recorder.update(env_steps=1, updates=1, m={"loss": 4.0})
    for number, loss in ((2, 9.0), (3, 1.0)):
        recorder.update(env_steps=number, updates=number, m={"loss": loss})
    recorder.close()
    assert summarise(tmp_path).extremes["loss"] == Extreme(1.0, 3, 9.0, 3)


def test_text_has_the_headings_their_readers_look_for():
    text = as_text(summarise(SAMPLES / "v1.2" / "full.ndjson", baseline=SAMPLES / "v1.2" / "full.ndjson"))
    for heading in (
        "Epochs analysed: 6 (mode=replay, cycle_id=2)",
        "Latest metrics: ",
        "Queue conflicts: queue_conflict_events 32",
        "Social interactions: shared_meal_events 1",
        "Hygiene & rest: ",
        "Extremes:",
        "Anneal status: ",
        "Baseline drift",
    ):
        assert heading in text


def test_markdown_is_two_tables():
    text = as_markdown(summarise(SAMPLES / "v1.1" / "full.ndjson", baseline=SAMPLES / "v1.1" / "full.ndjson"))
    assert text.startswith("### PPO Telemetry Summary")
    assert "| Metric | Latest | Min | at | Max | at |" in text
    assert "#### Baseline Drift" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {row.count("|") for row in rows} == {7, 6}


def test_json_has_every_part():
    plain = json.loads(json.dumps(summarise(SAMPLES / "v1.2" / "full.ndjson").to_json(), allow_nan=False))
    assert (plain["epochs"], plain["data_mode"], plain["cycle_id"], plain["log_stream_offset"]) == (
        6,
        "replay",
        2.0,
        6.0,
    )
    assert plain["anneal"]["stage"] == "ppo"
    assert plain["anneal"]["bc_accuracy"] == 0.93
    assert plain["conflict"]["queue_conflict_events"] == 32.0
    assert plain["social"]["chat_quality_mean"] == 0.7


def test_drift_is_told_per_epoch_and_worst():
    file = SAMPLES / "v1.1" / "full.ndjson"
    plain = summarise(file, baseline=file).to_json()["baseline_drift"]["loss"]
    losses = [json.loads(line)["loss_total"] for line in file.read_text().splitlines()]
    middle = sorted(losses)[3]
    mad = sorted(abs(x - middle) for x in losses)[3]
    expected = [(x - middle) / (1.4826 * mad) for x in losses]
    assert plain["per_epoch"] == pytest.approx(expected, abs=1e-3)
    assert abs(plain["worst_robust_z"]) == pytest.approx(max(abs(x) for x in expected), abs=1e-3)


def test_a_record_without_updates_has_a_summary(tmp_path: Path):
    file = tmp_path / "x.ndjson"
    file.write_text("hello\n")
    text = as_text(summarise(file))
    assert "Epochs analysed: 0" in text
    assert "1 unreadable lines, the first: x.ndjson:1" in text
