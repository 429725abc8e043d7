"""A graph at work in a thread: commands, breaks, failures, what stays of it."""

import time
from pathlib import Path

import pytest

from surefoot.errors import GraphError
from surefoot.graph.spec.model import Graph
from surefoot.graph.templates import template
from surefoot.server.studio.commands import breaks_of
from surefoot.server.studio.run_library import Library
from surefoot.server.studio.session import Session


def small(name: str = "cartpole") -> Graph:
    graph = template(name)
    graph.remove("print")
    graph.nodes["trainer"].params |= {"horizon_length": 8, "epochs": 1, "minibatch_size": 32}
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


def test_a_run_goes_to_its_end_and_is_a_run_like_any_other(tmp_path) -> None:
    session, heard = started(small(), tmp_path)
    heard.until(session, "finished")
    session.close()
    assert session.to_json()["updates"] == 6
    assert [row["update"] for row in session.curves.to_json()] == [1, 2, 3, 4, 5, 6]
    (row,) = Library(tmp_path).rows()
    assert (row["state"], row["env"], row["env_steps"], row["graph"]) == ("finished", "CartPole-v1", 384, True)
    page = Library(tmp_path).curves(row["run"])
    assert page["x"]["updates"][-1] == 6
    assert "CartPole-v1" in Library(tmp_path).report(row["run"])
    assert heard.all[-1]["state"] == "finished"


def test_a_paused_run_is_stepped_and_its_values_are_seen(tmp_path) -> None:
    session, heard = started(small(), tmp_path, paused=True)
    session.command("watch", ["step.rewards", "ghost.port"])
    session.command("tick")
    session.command("node")
    session.command("update")
    stopped_at(heard, "update 1")
    whys = [message["why"] for message in heard.all if message["on"] == "status"]
    assert "one tick" in whys
    assert "either fired" in whys
    assert session.to_json()["tick"] == 8
    values = [message["values"] for message in heard.all if message.get("values")]
    assert values[-1]["step.rewards"]["shape"] == [8]
    session.close()
    assert session.state == "stopped"


def test_a_condition_stops_the_run(tmp_path) -> None:
    heard = Heard()
    session = Session("doc", small(), tmp_path, heard)
    session.command("breaks", breaks_of([{"end": "step.rewards", "test": ">", "limit": 0.5, "key": ""}]))
    session.start()
    heard.until(session, "paused")
    assert session.why == "step.rewards > 0.5"
    session.close()
    with pytest.raises(GraphError, match="a break tests with"):
        breaks_of([{"end": "a.b", "test": "!", "limit": 1}])


def test_a_node_that_fails_is_named_with_what_it_was_given(tmp_path) -> None:
    graph = small()
    graph.nodes["agent"].params["output_size"] = 3
    session, heard = started(graph, tmp_path)
    heard.until(session, "failed")
    session.close()
    assert session.error is not None
    assert session.error["node"] == "step"
    assert session.error["inputs"]["actions"]["shape"] == [8]
    (row,) = Library(tmp_path).rows()
    assert (row["state"], row["env"]) == ("error", "CartPole-v1")
    assert "failed in tick 0" in row["finding"]


def test_a_stopped_run_is_taken_up_from_its_checkpoint(tmp_path) -> None:
    graph = small()
    graph.run.total_steps = 8 * 8 * 400
    session, heard = started(graph, tmp_path, paused=True)
    for number in (1, 2, 3):
        session.command("update")
        stopped_at(heard, f"update {number}")
    session.close()
    library = Library(tmp_path)
    name = library.rows()[0]["run"]
    again, heard = started(library.graph_of(name), tmp_path, paused=True, resume=library.get(name))
    again.command("update")
    stopped_at(heard, "update 4")
    assert again.to_json()["tick"] == 32
    again.close()
    assert library.curves(name)["x"]["updates"][-1] == 4
    assert library.compare([name], "approx_kl")["groups"][0]["count"] == 1


def test_a_run_that_is_stopped_in_mid_rollout_ends_with_the_weights_of_one_that_is_not(tmp_path) -> None:
    whole, heard = started(small(), tmp_path / "whole")
    heard.until(whole, "finished")
    whole.close()
    first, heard = started(small(), tmp_path / "parts", paused=True)
    first.command("update")
    stopped_at(heard, "update 1")
    for number in range(3):
        first.command("tick")
        while first.to_json()["tick"] < 9 + number:
            time.sleep(0.005)
    first.close()
    library = Library(tmp_path / "parts")
    (row,) = library.rows()
    second, heard = started(library.graph_of(row["run"]), tmp_path / "parts", resume=library.get(row["run"]))
    heard.until(second, "finished")
    second.close()
    assert second.engine.sha256() == whole.engine.sha256()
    assert first.engine.sha256() != whole.engine.sha256()
