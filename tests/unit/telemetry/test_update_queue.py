"""Updates that wait for a line."""

from __future__ import annotations

from surefoot.telemetry.files.merge_updates import PendingUpdate
from surefoot.telemetry.update_queue import UpdateQueue


def pending(number: int, t: float) -> PendingUpdate:
    return PendingUpdate(t, 64 * number, number, {"loss": float(number)}, (), {}, None, 0, False, False, None, {})


def test_an_empty_queue_has_no_record() -> None:
    assert UpdateQueue("r", updates_per_second=10.0, early=0).take() is None


def test_updates_within_the_gap_share_a_record() -> None:
    queue = UpdateQueue("r", updates_per_second=10.0, early=0)
    queue.add(pending(1, 5.0))
    assert queue.is_due(5.0)
    assert queue.take() is not None
    for number, t in ((2, 5.02), (3, 5.04)):
        queue.add(pending(number, t))
        assert not queue.is_due(t)
    assert queue.is_due(5.11)
    record = queue.take()
    assert record is not None
    assert (record.updates, record.covers, record.m["loss"]) == (3, 2, 2.5)


def test_a_clock_that_is_set_back_holds_nothing_up() -> None:
    queue = UpdateQueue("r", updates_per_second=10.0, early=0)
    queue.add(pending(1, 100.0))
    queue.take()
    assert queue.is_due(99.0)


def test_the_first_lines_come_at_once() -> None:
    queue = UpdateQueue("r", updates_per_second=0.1, early=2)
    due: list[bool] = []
    for number in (1, 2, 3):
        queue.add(pending(number, float(number)))
        due.append(queue.is_due(float(number)))
        if due[-1]:
            queue.take()
    assert due == [True, True, False]


def test_expensive_lines_are_further_apart_but_not_without_limit() -> None:
    queue = UpdateQueue("r", updates_per_second=10.0, early=0)
    queue.add(pending(1, 0.0))
    queue.take()
    queue.line_seconds = 0.0006  # 0.2 % of 0.3 s
    assert not queue.is_due(0.29)
    assert queue.is_due(0.31)
    queue.line_seconds = 60.0  # five times the usual gap is the most
    assert queue.is_due(0.51)


def test_what_was_deferred_is_told_before_the_record_is_made() -> None:
    queue = UpdateQueue("r", updates_per_second=10.0, early=0)

    def tell() -> None:
        assert not queue.is_due(1.0)  # no line between two deferred updates
        queue.add(pending(7, 1.0))

    queue.defer(tell)
    record = queue.take()
    assert record is not None
    assert record.updates == 7
