"""How streams are divided among processes, and how long a worker may be silent; what happens then is in tests/e2e."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from surefoot.envs.workers.env_workers import START, TIMEOUT, EnvWorkers, LocalShare, shares


@pytest.mark.parametrize(("streams", "count", "sizes"), [(8, 2, [4, 4]), (5, 3, [1, 2, 2]), (3, 3, [1, 1, 1])])
def test_shares_are_even_and_cover_all_streams_in_order(streams: int, count: int, sizes: list[int]) -> None:
    slices = shares(streams, count)
    assert [rows.stop - rows.start for rows in slices] == sizes
    assert [i for rows in slices for i in range(streams)[rows]] == list(range(streams))


def limits(workers: EnvWorkers) -> tuple[float, float]:
    """For a step, and for a new worker."""
    return workers._limit("step"), workers._limit("join")


@pytest.fixture
def alone() -> Iterator[EnvWorkers]:
    """This process, without workers."""
    world: Any = None
    workers = EnvWorkers([slice(0, 1)], world)
    yield workers
    workers.pool.close()


def test_where_the_envs_of_this_process_are_slow_workers_may_be_slower(alone: EnvWorkers) -> None:
    assert limits(alone) == (TIMEOUT, START) == (30.0, 60.0)
    alone.local.slowest.update(other=2.9, build=5.9)
    assert limits(alone) == (30.0, 60.0)
    alone.local.slowest.update(other=4.0, build=7.0)
    assert limits(alone) == (40.0, 70.0)


def test_an_explicit_limit_is_not_changed_but_leaves_time_to_start(alone: EnvWorkers) -> None:
    alone.timeout = 1.5
    alone.local.slowest.update(other=4.0)
    assert limits(alone) == (1.5, 60.0)


def test_this_process_remembers_its_slowest_response(monkeypatch: pytest.MonkeyPatch) -> None:
    local = LocalShare(slice(0, 1), -1)
    clock = iter([0.0, 3.0, 10.0, 12.0, 20.0, 25.0])
    monkeypatch.setattr("surefoot.envs.workers.env_workers.time.monotonic", lambda: next(clock))
    monkeypatch.setattr(local._share, "render", lambda: None)
    monkeypatch.setattr(local._share, "build", lambda: None)
    for command in ("render", "render", "build"):
        local.ask(command)
        local.receive()
    assert local.slowest == {"other": 3.0, "build": 5.0}


def test_closing_the_pool_closes_the_shared_memory(alone: EnvWorkers) -> None:
    alone.pool.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(alone.memory)
