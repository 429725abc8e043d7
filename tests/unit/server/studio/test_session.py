"""A graph at work in a thread: commands, breaks, failures, what stays of it."""

import re
import time

import pytest

from surefoot.cli.verbs.doctor import DoctorArgs
from surefoot.errors import GraphError
from surefoot.graph.run.interpreter import Break
from surefoot.server.studio.run_library import Library
from surefoot.server.studio.session import Session
from surefoot.telemetry.doctor.doctor import examine
from surefoot.telemetry.doctor.findings import patch_text
from surefoot.telemetry.export.run_facts import gather, number
from surefoot.telemetry.reader import load_curves

from .session_cases import Heard, small, started, stopped_at


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
    session.command("breaks", [Break("step.rewards", ">", 0.5)])
    session.start()
    heard.until(session, "paused")
    assert session.why == "step.rewards > 0.5"
    session.close()
    with pytest.raises(GraphError, match="the test of a breakpoint is"):
        Break("a.b", "!", 1)


def test_a_node_that_fails_is_named_with_what_it_was_given(tmp_path) -> None:
    graph = small()
    graph.disconnect("step.actions")
    graph.add("wrong", "Code", source="out = actions + 5", inputs=["actions"], outputs=["out"])
    graph.connect("action.actions", "wrong.actions")
    graph.connect("wrong.out", "step.actions")
    session, heard = started(graph, tmp_path, trust=True)
    heard.until(session, "failed")
    session.close()
    assert session.error is not None
    assert session.error["node"] == "step"
    assert session.error["inputs"]["actions"]["shape"] == [8]
    (row,) = Library(tmp_path).rows()
    assert (row["state"], row["env"]) == ("error", "CartPole-v1")
    assert "failed in tick 0" in row["finding"]


def test_the_doctors_findings_are_those_of_the_command_line(tmp_path, capsys) -> None:
    """A learning rate of 0.3 has several consequences; the advice is about their cause."""
    graph = small()
    graph.nodes["trainer"].params["lr"] = 0.3
    graph.run.total_steps = 8 * 8 * 60
    session, heard = started(graph, tmp_path)
    heard.until(session, "finished", "failed")
    session.close()
    # The last message of a run with its findings comes before the one that ends it.
    assert DoctorArgs(runs_or_word=(str(session.keeper.directory.path),)).run() == 1
    text = capsys.readouterr().out
    assert session.findings == [m["findings"] for m in heard.all if m["on"] == "findings"][-1]
    examined = examine(session.keeper.directory.path)
    assert [each["rule"] for each in session.findings] == [each.rule for each in examined.findings]
    first = next(each for each in session.findings if each["primary"])
    assert first["patch"]["lr"] < 0.3
    assert f"{first['rule']} {first['title']} ← start here" in text
    for each in session.findings:
        assert each["node"] == "trainer"
        shown = re.findall(rf"^( +).*{each['rule']} ", text, re.MULTILINE)
        # Consequences are indented below their cause; advice has one line for all.
        assert each["severity"] == "info" or [len(indent) > 2 for indent in shown] == [bool(each["root"])]
        if each["patch"] and not each["root"]:
            assert patch_text(each["patch"]) in text


def test_one_run_has_one_score_and_one_number_of_steps_everywhere(tmp_path) -> None:
    graph = small()
    graph.run.total_steps = 8 * 8 * 400
    session, heard = started(graph, tmp_path)
    while session.keeper.recorder.updates < 60:
        time.sleep(0.005)
    session.close()
    heard.until(session, "stopped")
    library = Library(tmp_path)
    (row,) = library.rows()
    tiles = {name: value for name, value, _ in gather(load_curves(tmp_path / row["run"]), running=False).tiles}
    assert tiles["score"] == number(row["return"])
    assert int(tiles["env steps"].replace(",", "")) == row["env_steps"] == session.to_json()["env_steps"]
