"""Bookkeeping of workers, whatever they are: replacement, spares, and when it gives up."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from surefoot.envs.workers.worker_pool import TRIES, WorkerPool
from surefoot.errors import WorkersLost


class Pool(WorkerPool[int]):
    """Workers are numbers that count up."""

    def __init__(self, count: int, gone: Sequence[int] = ()) -> None:
        self.made, self.ended = 0, list[int]()
        super().__init__(count, self.make, self.ended.extend, lambda worker: worker not in gone)

    def make(self) -> int:
        self.made += 1
        return self.made


def lose(pool: Pool, *, early: bool = True) -> None:
    pool.lose(0, "worker 1 ended", consequence="a new one starts", limit=", enough", error=EOFError(), early=early)


def test_a_spare_worker_takes_the_place_of_a_lost_one_and_a_new_one_where_there_is_none():
    pool = Pool(2)
    pool.prepare_spare()
    assert (pool.replace(1), pool.workers) == (3, [1, 3])
    assert (pool.replace(0), pool.workers) == (4, [4, 3])


def test_a_spare_worker_that_is_gone_itself_is_passed_over():
    pool = Pool(1, gone=[2])
    pool.prepare_spare()
    assert pool.replace(0) == 3


def test_losses_are_counted_and_each_is_told_once():
    pool = Pool(1)
    lose(pool)
    assert pool.take_losses() == ["worker 1 ended; a new one starts"]
    assert pool.take_losses() == []
    assert pool.lost == 1


def test_a_worker_that_is_lost_early_too_often_in_a_row_is_not_replaced_again():
    pool = Pool(1)
    for _ in range(TRIES - 1):
        lose(pool)
    with pytest.raises(WorkersLost, match=f"worker 1 ended; that is the {TRIES}th time in a row, enough"):
        lose(pool)
    assert pool.over is not None


def test_work_in_between_or_a_late_loss_begins_the_count_anew():
    pool = Pool(1)
    for _ in range(3):
        for _ in range(TRIES - 1):
            lose(pool)
        pool.settled(0)
    lose(pool, early=False)
    assert pool.over is None


def test_closing_ends_every_worker_once_the_spare_one_included():
    pool = Pool(2)
    pool.prepare_spare()
    pool.close()
    pool.close()
    assert pool.ended == [1, 2, 3]


def test_a_pool_that_cannot_start_all_its_workers_ends_those_that_it_started():
    ended: list[int] = []
    numbers = iter([1])
    with pytest.raises(StopIteration):
        WorkerPool(2, lambda: next(numbers), ended.extend)
    assert ended == [1]
