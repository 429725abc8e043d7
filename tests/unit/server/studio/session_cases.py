"""Sessions of a small graph, and a way to wait for their messages."""

import time
from pathlib import Path

from surefoot.graph.spec.model import Graph
from surefoot.graph.templates import template
from surefoot.server.studio.session import Session


def small(name: str = "cartpole") -> Graph:
    graph = template(name)
    graph.remove("print")
    graph.nodes["trainer"].params |= {"rollout_steps": 8, "epochs": 1, "minibatch_size": 32}
    graph.run.total_steps = 8 * 8 * 6
    return graph


class Heard:
    """All that a session told, and a way to wait for some of it."""

    def __init__(self) -> None:
        self.all: list[dict] = []

    def __call__(self, message: dict) -> None:
        self.all.append(message)

    def until(self, session: Session, *states: str) -> None:
        end = time.monotonic() + 120
        while session.state not in states:
            assert time.monotonic() < end, session.state
            time.sleep(0.005)


def stopped_at(heard: Heard, why: str) -> None:
    """Told to all, that is: with its numbers."""
    end = time.monotonic() + 120
    while not any(message["on"] == "status" and message["why"] == why for message in list(heard.all)):
        assert time.monotonic() < end, why
        time.sleep(0.005)


def started(graph: Graph, folder: Path, **more) -> tuple[Session, Heard]:
    heard = Heard()
    session = Session("doc", graph, folder, heard, **more)
    session.start()
    return session, heard
