"""Rollouts by a pool: a lost piece is requested again, and too many losses end the pool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from surefoot.errors import WorkersLost
from surefoot.scale.rollout_pool import Lost, Patience, RolloutPool


class Handle:
    """A worker in this process that is lost as often as `losses` says."""

    process = 0

    def __init__(self, losses: list[str]) -> None:
        self.losses, self.asked = losses, ()

    def build(self, number: int, streams: int, generation: int) -> None:
        self.asked = (number, streams, generation)

    def ready(self, limit: float) -> None:
        if self.losses and self.losses[0] == "start":
            raise Lost(silent=True)

    def begin(self, weights: Any, version: int) -> None:
        self.version = version

    def piece(self, limit: float) -> Any:
        if self.losses:
            raise Lost(silent=self.losses.pop() == "silent")
        return (*self.asked, self.version)

    def call(self, command: str, arguments: Sequence[Any], limit: float) -> Any:
        return {"generation": self.asked[2]}

    def end(self, *, silent: bool) -> str | None:
        return None if silent else "was ended"


def pool(losses: list[str]) -> RolloutPool:
    return RolloutPool("test", lambda: Handle(losses), [3, 2], Patience(piece=1.0, start=1.0, fixed=0.5))


def test_each_worker_gives_a_piece_of_its_streams_with_the_published_version():
    workers = pool([])
    workers.publish({}, 7)
    workers.ask()
    assert workers.receive() == [(0, 3, 0, 7), (1, 2, 0, 7)]
    assert workers.take_losses() == []


@pytest.mark.parametrize(("how", "message"), [("gone", "was ended"), ("silent", "gave no answer in 0.5 s")])
def test_a_lost_worker_is_replaced_by_a_new_generation_and_asked_again(how: str, message: str):
    workers = pool([how])
    workers.publish({}, 1)
    workers.ask()
    assert workers.receive() == [(0, 3, 1, 1), (1, 2, 0, 1)]
    assert workers.take_losses() == [
        f"rollout worker 1 of 2 (test) {message}; its piece is requested again, in new episodes"
    ]
    assert [state["generation"] for state in workers.states()] == [1, 0]


def test_a_worker_that_is_lost_five_times_in_a_row_ends_it():
    workers = pool(["gone"] * 9)
    workers.ask()
    with pytest.raises(WorkersLost, match="5th time in a row, so it is not replaced again"):
        workers.receive()


def test_workers_that_do_not_start_are_named_with_the_limit():
    with pytest.raises(WorkersLost, match=r"2 rollout workers \(test\) did not all start within 1 s"):
        pool(["start"])
