"""The history that signs are computed from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from doctor_runs import HEALTHY, record

from surefoot.telemetry.doctor.doctor import Doctor
from surefoot.telemetry.doctor.metric_history import MetricHistory, Returns
from surefoot.telemetry.schema import VERSION, EventRecord, HeaderRecord, UpdateRecord


def test_a_resumed_run_is_no_gap():
    doctor = Doctor()
    records = list(record(updates=6))
    head = records[0]
    assert isinstance(head, HeaderRecord)
    for each in records:
        doctor.observe(each)
    again = {"v": VERSION, "run": "r", "t": 2e9, "env_steps": 300, "updates": 3}
    doctor.observe(EventRecord(**again, seq=records[-1].seq + 1, name="resumed"))
    doctor.observe(
        HeaderRecord(**again, seq=records[-1].seq + 2, env="X", seed=0, config=head.config, session="another")
    )
    doctor.observe(UpdateRecord(**again | {"env_steps": 400}, seq=records[-1].seq + 3, m=dict(HEALTHY)))
    assert doctor.history.odd_lines == 0


def test_returns_keep_their_mean_when_neighbours_are_merged():
    returns = Returns()
    for i in range(5000):
        returns.add(i, float(i), 1)
    assert len(returns.means) <= Returns.LENGTH
    assert np.average(returns.means, weights=returns.counts) == pytest.approx(2499.5)
    assert returns.steps[-1] == 4999


def update(number: int, **fields: Any) -> UpdateRecord:
    common = {"v": VERSION, "run": "r", "seq": number, "t": float(number), "env_steps": 8 * number, "updates": number}
    return UpdateRecord(**common, **({"m": {}} | fields))


def test_a_sampled_number_is_held_until_the_next_measurement():
    history = MetricHistory()
    for number, m in enumerate(({"rss_mb": 5.0}, {}, {"rss_mb": 9.0}), 1):
        history.add(update(number, m=m))
    assert history.last("rss_mb", 3).tolist() == [5.0, 5.0, 9.0]
    assert history.measured("rss_mb", 4) == [5.0, 9.0]
    assert (history.first("rss_mb"), history.now("rss_mb")) == (5.0, 9.0)


def test_the_high_is_the_maximum_over_the_covered_updates():
    history = MetricHistory()
    history.add(update(1, m={"kl": 2.0, "lr": 0.1}, m_max={"kl": 7.0}))
    assert (history.high("kl"), history.high("lr")) == (7.0, 0.1)


def test_the_tolerance_is_three_standard_errors_of_the_first_episodes():
    returns = Returns()
    for value in (0.0, 4.0) * 8:
        returns.add_first(value)
    assert returns.start == (2.0, 2.0)
    assert returns.tolerance() == pytest.approx(3 * 2.0 / 4.0)
