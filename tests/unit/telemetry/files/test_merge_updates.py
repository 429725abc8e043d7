import math
from typing import Any

import pytest

from surefoot.telemetry.files.merge_updates import PendingUpdate, UpdateQueue, merge, merge_pending, merge_plain
from surefoot.telemetry.schema import Episodes, UpdateRecord


def update(number: int, **fields: Any) -> UpdateRecord:
    common: dict[str, Any] = {"v": "2.0.0", "run": "r", "seq": 0, "t": float(number)}
    return UpdateRecord(**common, env_steps=number * 100, updates=number, **({"m": {}} | fields))


def test_one_update_stays_itself():
    one = update(1, m={"lr": 0.1}, epochs=[{"approx_kl": 0.2}])
    assert merge([one]) is one


def test_means_come_with_the_range_of_what_varied():
    both = merge([update(1, m={"kl": 1.0, "lr": 0.1}), update(2, m={"kl": 4.0, "lr": 0.1})])
    assert both.m == {"kl": 2.5, "lr": 0.1}
    assert (both.m_min, both.m_max) == ({"kl": 1.0}, {"kl": 4.0})
    assert (both.covers, both.updates, both.env_steps, both.t) == (2, 2, 200, 2.0)


def test_a_number_only_some_updates_have_is_the_mean_of_those():
    both = merge([update(1, m={"std": 1.0, "x": None}), update(2, m={"x": None}), update(3, m={"std": 3.0, "x": None})])
    assert both.m == {"std": 2.0, "x": None}


def test_a_shared_line_has_no_epochs():
    both = merge([update(n, epochs=[{"approx_kl": 0.2}]) for n in (1, 2)])
    assert both.epochs == []


def test_times_and_counts_are_summed():
    both = merge(
        [
            update(1, seconds={"learn": 0.5}, episodes_dropped=2, stopped_early=1),
            update(2, seconds={"learn": 0.25, "env": 1.0}, rolled_back=1, stopped_early=1),
        ]
    )
    assert both.seconds == {"learn": 0.75, "env": 1.0}
    assert (both.episodes_dropped, both.stopped_early, both.rolled_back) == (2, 2, 1)


def test_episodes_weigh_by_their_number():
    few = Episodes(count=1, return_mean=10.0, return_min=10.0, return_max=10.0, length_mean=4.0)
    many = Episodes(count=3, return_mean=2.0, return_min=-1.0, return_max=5.0, length_mean=8.0, success_rate=1.0)
    both = merge([update(1, episodes=few), update(2, episodes=many), update(3)])
    assert both.episodes == Episodes(
        count=4, return_mean=4.0, return_min=-1.0, return_max=10.0, length_mean=7.0, success_rate=1.0
    )


def test_nothing_that_went_wrong_is_lost():
    both = merge(
        [
            update(1, m={"loss": None}, nonfinite={"m.loss": "nan"}, skipped_reason="no valid steps"),
            update(2, m={"loss": 1.0}),
        ]
    )
    assert both.nonfinite == {"m.loss": "nan"}
    assert both.skipped_reason == "no valid steps"
    assert both.m == {"loss": 1.0}


def pending_update(i: int, m: dict[str, Any], **fields: Any) -> PendingUpdate:
    common: dict[str, Any] = {"epochs": [{"loss": 1.0}], "seconds": {"env": 0.1 * i}, "episodes": None, "labels": {}}
    common |= {"episodes_dropped": i, "stopped_early": i == 2, "rolled_back": False, "skipped_reason": None}
    return PendingUpdate(t=float(i), env_steps=i, updates=i, m=m, **(common | fields))


@pytest.mark.parametrize("extra", [[], [3], [0, 3, 8]])
def test_many_numbers_at_a_time_are_the_same_as_one_by_one(extra: list[int]):
    rows = [{"a": i * 0.1, "b": 5, "c": (-1.0) ** i} for i in range(9)]
    stats = [{"d": i, "e": 2} if i in extra else {} for i in range(9)]
    episodes = [Episodes.of([float(i)], [3]) for i in range(9)]
    many = [
        pending_update(i, row, episodes=each, stats=some)
        for i, (row, each, some) in enumerate(zip(rows, episodes, stats, strict=True))
    ]
    plain = merge_plain(many, "r")
    assert plain == merge([each.record("r") for each in many])
    assert plain is not None
    assert type(plain.m["b"]) is int


@pytest.mark.parametrize("odd", [math.nan, math.inf, None])
def test_an_odd_number_that_only_some_updates_have_is_left_to_the_careful_way(odd: float | None):
    pair = [pending_update(1, {"a": 1.0}, stats={"d": odd}), pending_update(2, {"a": 1.0}, stats={"d": 1.0})]
    expected = merge([each.record("r") for each in pair]) if odd is None else None
    assert merge_plain(pair, "r") == expected


@pytest.mark.parametrize(
    "other", [{"a": None}, {"a": math.nan}, {"a": math.inf}, {"b": 1.0}, {}, {"a": 1.0, "b": math.nan}]
)
def test_what_is_not_plain_is_left_to_the_careful_way(other: dict[str, float | None]):
    for pair in (
        [pending_update(1, other), pending_update(2, {"a": 1.0})],
        [pending_update(1, {"a": 1.0}), pending_update(2, other)],
    ):
        merged = merge_plain(pair, "r")
        # One without names leaves nothing in common: then all of it is added up by itself.
        assert merged is None or (other == {} and merged == merge([each.record("r") for each in pair]))


def test_an_episode_that_is_not_finite_is_left_to_the_careful_way():
    odd = Episodes(count=1, return_mean=1.0, return_min=math.nan, return_max=1.0, length_mean=1.0)
    assert (
        merge_plain([pending_update(1, {}, episodes=Episodes.of([1.0], [1])), pending_update(2, {}, episodes=odd)], "r")
        is None
    )


def test_numbers_that_json_cannot_hold_are_null_and_named():
    episodes = Episodes(count=2, return_mean=math.nan, return_min=0.0, return_max=1.0, length_mean=3.0)
    epochs = [{"kl": 0.1}, {"kl": math.nan}]
    record = merge_pending([pending_update(1, {"a": math.inf}, epochs=epochs, episodes=episodes)], "r")
    assert record.m == {"a": None}
    assert record.epochs == [{"kl": 0.1}, {"kl": None}]
    assert record.episodes == Episodes(count=2, return_min=0.0, return_max=1.0, length_mean=3.0)
    assert record.nonfinite == {"m.a": "inf", "epochs.1.kl": "nan", "episodes.return_mean": "nan"}


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


def test_a_clock_that_is_set_back_delays_no_line() -> None:
    queue = UpdateQueue("r", updates_per_second=10.0, early=0)
    queue.add(pending(1, 100.0))
    queue.take()
    assert queue.is_due(99.0)


def test_the_first_lines_are_written_immediately() -> None:
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
    queue.line_took(0.0006)  # 0.2 % of 0.3 s
    assert not queue.is_due(0.29)
    assert queue.is_due(0.31)
    queue.line_took(60.0)  # five times the usual gap is the most
    assert queue.is_due(0.51)


def test_deferred_updates_are_added_before_the_record_is_made() -> None:
    queue = UpdateQueue("r", updates_per_second=10.0, early=0)

    def report() -> None:
        assert not queue.is_due(1.0)  # no line between two deferred updates
        queue.add(pending(7, 1.0))

    assert queue.defer(0.0, report, ())
    record = queue.take()
    assert record is not None
    assert record.updates == 7
