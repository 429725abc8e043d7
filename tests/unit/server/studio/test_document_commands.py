"""Graphs as a tab changes them: fixed, renamed, duplicated, deleted and restored."""

import pytest

from surefoot.errors import GraphError
from surefoot.server.studio.document_commands import DocumentCommands
from surefoot.server.studio.graph_files import GraphDirectory


@pytest.fixture
def commands(tmp_path) -> DocumentCommands:
    return DocumentCommands(GraphDirectory(tmp_path), lambda message: None, lambda doc: doc == "busy")


def test_a_finding_shows_its_fix_and_is_fixed_alone_or_with_all_others(commands) -> None:
    doc = commands.do_new(template="cartpole")["doc"]
    for params in ({"output_size": 3}, {"hidden": [10**6, 10**6]}):
        commands.do_op(doc, {"op": "set", "id": "agent", "params": params})
    findings = commands.do_open(doc)["check"]["findings"]
    assert [each["fix"] for each in findings] == ["set agent: output_size = 2"]
    commands.do_fix(doc, 0)
    assert [each["port"] for each in commands.do_open(doc)["check"]["findings"]] == ["hidden"]
    commands.do_undo(doc)
    commands.do_fix(doc)
    assert commands.do_open(doc)["check"]["findings"] == []
    with pytest.raises(GraphError, match="nothing here can be fixed"):
        commands.do_fix(doc)


def test_a_graph_is_renamed_with_its_history_and_duplicated_without(commands) -> None:
    doc = commands.do_new(template="cartpole")["doc"]
    commands.do_op(doc, {"op": "remove", "id": "print"})
    assert commands.do_rename(doc, "poles")["done"] == 1
    with pytest.raises(GraphError, match="there is no graph 'cartpole'"):
        commands.do_open("cartpole")
    copy = commands.do_duplicate("poles")
    assert (copy["doc"], copy["done"]) == ("poles-2", 0)
    assert copy["graph"] == commands.do_open("poles")["graph"]
    with pytest.raises(GraphError, match="already a graph 'poles'"):
        commands.do_rename("poles-2", "poles")
    with pytest.raises(GraphError, match="not a valid name"):
        commands.do_rename("poles", "../x")


def test_the_trash_gives_graphs_back(commands) -> None:
    doc = commands.do_new(template="cartpole")["doc"]
    commands.do_op(doc, {"op": "remove", "id": "print"})
    commands.do_put_away(doc)
    commands.do_new(template="cartpole")
    (item,) = commands.do_trash()
    assert item["name"] == "cartpole"
    restored = commands.do_restore(item["item"])
    assert (restored["doc"], restored["done"]) == ("cartpole-2", 1)
    assert commands.do_trash() == []
    with pytest.raises(GraphError, match="in the trash"):
        commands.do_restore("../..")


def test_a_graph_that_runs_is_neither_renamed_nor_deleted(commands) -> None:
    commands.do_new("busy")
    for refused in (lambda: commands.do_rename("busy", "x"), lambda: commands.do_put_away("busy")):
        with pytest.raises(GraphError, match="busy is running"):
            refused()


def test_a_shared_page_is_imported_as_the_same_graph(commands) -> None:
    doc = commands.do_new(template="multi_env")["doc"]
    shared = commands.do_share(doc)
    assert shared["svg"].startswith("<svg")
    assert commands.do_import("back", shared["html"])["graph"] == commands.do_open(doc)["graph"]
