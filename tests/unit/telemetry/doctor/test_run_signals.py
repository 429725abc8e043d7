"""Signs in the record, the environment and the weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from doctor_runs import HEALTHY, findings_of, record

from surefoot.telemetry.doctor.doctor import Doctor
from surefoot.telemetry.schema import EpisodeRecord, Record, UpdateRecord


def test_two_writers_in_one_record_are_found():
    doctor = Doctor()
    for one, other in zip(record(updates=5), record(updates=5), strict=True):
        doctor.observe(one)
        doctor.observe(other)
    (finding,) = [f for f in doctor.findings() if f.rule == "R19"]
    assert finding.severity == "error"


def test_updates_that_repeat_to_the_last_digit_are_found():
    run = [each for each in record(updates=30) if not isinstance(each, EpisodeRecord)]
    doctor = Doctor()
    for each in run:
        if isinstance(each, UpdateRecord):
            each.m.update({name: round(HEALTHY[name], 9) for name in ("policy_loss", "value_loss", "entropy")})
            each.m.update({n: HEALTHY[n] for n in ("approx_kl", "grad_norm", "explained_variance", "advantage_std")})
        doctor.observe(each)
    assert "R17" in {f.rule for f in doctor.findings()}


def test_a_time_limit_that_terminates_is_found():
    doctor = Doctor()
    for each in record():
        if isinstance(each, EpisodeRecord):
            each.length = min(each.length, 200)
        doctor.observe(each)
    assert "R21" in {f.rule for f in doctor.findings()}
    assert "R21" not in findings_of(record())


@pytest.mark.parametrize(
    ("rule", "ill", "well"),
    [
        ("R20M", {"rss_mb": lambda u: 300.0 + 20.0 * u}, {"rss_mb": 300.0}),
        ("R22S", {"obs_std_max": 1e-5}, {"obs_std_max": 0.5}),
        ("R15", {"dormant_share": 0.6, "returns": lambda share: 20.0}, {"dormant_share": 0.1}),
    ],
)
def test_an_info_finding_opens_only_for_its_fault(rule: str, ill: dict[str, Any], well: dict[str, Any]):
    assert rule in findings_of(record(**ill))
    assert rule not in findings_of(record(**well))


def test_a_long_pause_is_found():
    def silent() -> Iterator[Record]:
        for each in record():
            if each.updates >= 60:
                each.t += 1000.0
            yield each

    assert findings_of(silent())["R19G"].since_update == 60


def test_episodes_of_one_step_are_found():
    def short() -> Iterator[Record]:
        for each in record():
            yield msgspec.structs.replace(each, length=1) if isinstance(each, EpisodeRecord) else each

    assert "R21S" in findings_of(short())
