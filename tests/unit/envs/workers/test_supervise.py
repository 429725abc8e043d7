"""How long a worker may be silent; what happens then is in tests/e2e."""

from __future__ import annotations

from typing import Any

import pytest

from surefoot.envs.workers.env_workers import LocalShare
from surefoot.envs.workers.supervise import START, TIMEOUT, Supervisor


class Alone:
    """This process, without workers."""

    def __init__(self) -> None:
        self.here = LocalShare(slice(0, 1), -1)
        self.steppers, self.workers = [self.here], []


def limits(supervisor: Any) -> tuple[float, float]:
    """For a step, and for a new worker."""
    return supervisor._limit("step"), supervisor._limit("join")


@pytest.fixture
def supervisor() -> Any:
    crew: Any = Alone()
    return Supervisor(crew, crew)


def test_where_the_envs_of_this_process_are_slow_workers_may_be_slower(supervisor: Any) -> None:
    assert limits(supervisor) == (TIMEOUT, START) == (30.0, 60.0)
    supervisor._crew.here.slowest.update(other=2.9, build=5.9)
    assert limits(supervisor) == (30.0, 60.0)
    supervisor._crew.here.slowest.update(other=4.0, build=7.0)
    assert limits(supervisor) == (40.0, 70.0)


def test_a_limit_that_was_set_is_taken_as_it_is_but_leaves_time_to_start(supervisor: Any) -> None:
    supervisor.timeout = 1.5
    supervisor._crew.here.slowest.update(other=4.0)
    assert limits(supervisor) == (1.5, 60.0)


def test_this_process_remembers_its_slowest_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    here = LocalShare(slice(0, 1), -1)
    clock = iter([0.0, 3.0, 10.0, 12.0, 20.0, 25.0])
    monkeypatch.setattr("surefoot.envs.workers.env_workers.time.monotonic", lambda: next(clock))
    monkeypatch.setattr(here._share, "render", lambda: None)
    monkeypatch.setattr(here._share, "build", lambda: None)
    for command in ("render", "render", "build"):
        here.ask(command)
        here.hear()
    assert here.slowest == {"other": 3.0, "build": 5.0}
