from pathlib import Path

import numpy as np
import pytest

from surefoot.errors import TelemetryError
from surefoot.telemetry.doctor.drift import MOST_ROWS, BaselineLevel, DriftMeter, MetricDrift, is_metric, levels


def drift(baseline: dict[str, BaselineLevel], **columns: list[float]) -> list[MetricDrift]:
    meter = DriftMeter(baseline)
    for number, row in enumerate(zip(*columns.values(), strict=True), 1):
        meter.add(number, dict(zip(columns, row, strict=True)))
    return meter.drifts()


def log(path: Path, values: list[float]) -> Path:
    sample = (Path(__file__).parents[3] / "samples/telemetry/v1.0/minimal.ndjson").read_text()
    old = sample[sample.index('"loss_total"') :].split(",")[0]
    path.write_text("".join(sample.replace(old, f'"loss_total": {x}') for x in values))
    return path


def test_the_unit_is_the_spread_of_the_baseline_itself(tmp_path: Path):
    # Median 3, absolute deviations 2 1 0 1 2, so MAD 1.
    level = levels(log(tmp_path / "base.jsonl", [1, 2, 3, 4, 5]))["loss"]
    assert level == BaselineLevel(3.0, pytest.approx(1.4826))


def test_one_wild_epoch_does_not_widen_the_unit(tmp_path: Path):
    calm = levels(log(tmp_path / "a.jsonl", [1, 2, 3, 4, 5]))["loss"]
    wild = levels(log(tmp_path / "b.jsonl", [1, 2, 3, 4, 1e9]))["loss"]
    assert wild == calm


def test_the_worst_and_the_latest_are_told():
    (found,) = drift({"loss": BaselineLevel(3.0, 2.0)}, loss=[3.0, 9.0, float("nan"), 4.0])
    assert (found.worst, found.worst_update, found.worst_value, found.latest) == (3.0, 2, 9.0, 0.5)
    np.testing.assert_array_equal(found.rows, [0.0, 3.0, np.nan, 0.5])


def test_a_number_near_zero_makes_no_thousand_percent(tmp_path: Path):
    base = log(tmp_path / "base.jsonl", [-1e-9, 0.0, 1e-9])
    (found,) = drift({"loss": levels(base)["loss"]}, loss=[3e-8])
    assert abs(found.worst) < 0.1


def test_a_baseline_that_never_varies_still_has_a_unit(tmp_path: Path):
    assert levels(log(tmp_path / "base.jsonl", [50.0, 50.0]))["loss"] == BaselineLevel(50.0, pytest.approx(0.05))
    assert levels(log(tmp_path / "zero.jsonl", [0.0, 0.0]))["loss"] == BaselineLevel(0.0, pytest.approx(1e-6))


def test_clocks_and_ids_do_not_drift():
    assert not any(is_metric(name) for name in ("epoch", "cycle_id", "log_stream_offset", "seconds.env", "loss.max"))
    assert is_metric("approx_kl")


def test_a_baseline_may_be_one_object(tmp_path: Path):
    file = tmp_path / "baseline.json"
    file.write_text('{"baseline_reward_mean": -0.2, "baseline_sample_count": 2, "note": "golden"}')
    found = drift(levels(file), baseline_reward_mean=[-0.2, -0.3])
    assert [d.name for d in found] == ["baseline_reward_mean"]
    assert found[0].worst == pytest.approx(-0.1 / 2e-4)


@pytest.mark.parametrize("text", ["", "{}", '{"note": "x"}'])
def test_a_baseline_without_numbers_is_refused(tmp_path: Path, text: str):
    file = tmp_path / "baseline.json"
    file.write_text(text)
    with pytest.raises(TelemetryError, match="baseline"):
        levels(file)


def test_memory_does_not_grow_with_the_baseline_or_the_log(tmp_path: Path):
    many = MOST_ROWS + 1000
    found = drift({"loss": BaselineLevel(0.0, 1.0)}, loss=[5.0, *[1.0] * many])
    assert (found[0].worst, found[0].worst_update, len(found[0].rows)) == (5.0, 1, MOST_ROWS)
    level = levels(log(tmp_path / "base.jsonl", list(range(many))))["loss"]
    assert level.median == pytest.approx(many / 2, rel=0.001)
