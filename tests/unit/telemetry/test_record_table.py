"""Columns: a number that first appears late, and running time over sessions."""

import math

import numpy as np

from surefoot.telemetry.record_table import RowBuilder, RunningTime, update_row
from surefoot.telemetry.schema import EventRecord, HeaderRecord, UpdateRecord


def update(number: int, t: float = 0.0, **m: float) -> UpdateRecord:
    return UpdateRecord(v="2.0.0", run="r", seq=number, t=t, env_steps=8 * number, updates=number, m=m)


def test_a_number_that_appears_later_is_missing_before_and_after():
    rows = RowBuilder()
    for number, m in enumerate([{"a": 1.0}, {"a": 2.0, "b": 3.0}, {"b": 4.0}], 1):
        rows.add(update(number), float(number), m)
    table = rows.table()
    assert len(table) == 3
    assert table.env_steps.tolist() == [8, 16, 24]
    np.testing.assert_array_equal(table["a"], [1.0, 2.0, math.nan])
    np.testing.assert_array_equal(table["b"], [math.nan, 3.0, 4.0])
    assert np.isnan(table["never"]).all()


def test_a_row_has_the_metrics_and_their_ranges():
    record = update(1, loss=2.0)
    record.m_min["loss"], record.m_max["loss"], record.seconds["env"] = 1.0, 3.0, 0.5
    row = update_row(record)
    assert (row["loss"], row["loss.min"], row["loss.max"], row["seconds.env"]) == (2.0, 1.0, 3.0, 0.5)


def test_the_time_between_two_sessions_does_not_count():
    clock = RunningTime()
    common = {"v": "2.0.0", "run": "r", "env_steps": 0, "updates": 0}
    header = HeaderRecord(**common, seq=1, t=100.0, env="E", seed=0, config={}, session="one")
    assert clock.tick(header) == 0.0
    assert clock.tick(update(2, t=110.0)) == 10.0
    assert clock.tick(EventRecord(**common, seq=3, t=500.0, name="resumed")) == 10.0
    assert clock.tick(update(4, t=505.0)) == 15.0
    assert clock.tick(update(5, t=1.0)) == 15.0  # the machine's clock was set back
