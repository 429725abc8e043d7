"""Graph documents: changes are on disk, and edits by other programs are adopted."""

import errno
from contextlib import suppress

import pytest

from surefoot.errors import GraphError
from surefoot.graph.export.script import to_script
from surefoot.graph.export.svg import to_page
from surefoot.graph.spec.model import Graph
from surefoot.graph.spec.text import canonical, load_graph, save_graph
from surefoot.graph.templates import template
from surefoot.server.studio.graph_files import GraphDirectory

EPOCHS = {"op": "set", "id": "trainer", "params": {"epochs": 7}}


def test_a_change_is_in_the_file_and_in_the_log_before_it_returns(tmp_path) -> None:
    document = GraphDirectory(tmp_path).from_template("cartpole")
    document.do({"op": "set", "id": "trainer", "params": {"epochs": 3}})
    assert load_graph(tmp_path / "cartpole.json").nodes["trainer"].params["epochs"] == 3
    again = GraphDirectory(tmp_path).get("cartpole")
    assert again.graph.nodes["trainer"].params["epochs"] == 3
    assert again.undo()
    assert canonical(again.graph) == canonical(template("cartpole"))
    assert [row["done"] for row in again.past()] == [False]


def test_a_file_that_is_older_than_the_log_does_not_undo_changes(tmp_path) -> None:
    document = GraphDirectory(tmp_path).from_template("cartpole")
    old = (tmp_path / "cartpole.json").read_text()
    document.do({"op": "remove", "id": "print"})
    (tmp_path / "cartpole.json").write_text(old)  # as if the power went between the two
    assert "print" not in GraphDirectory(tmp_path).get("cartpole").graph.nodes


def test_an_edit_by_another_program_is_a_change_that_can_be_undone(tmp_path) -> None:
    GraphDirectory(tmp_path).from_template("cartpole")
    graph = template("cartpole")
    graph.remove("print")
    save_graph(graph, tmp_path / "cartpole.json")
    document = GraphDirectory(tmp_path).get("cartpole")
    assert "print" not in document.graph.nodes
    assert document.undo()
    assert "print" in document.graph.nodes


def test_every_earlier_state_can_be_restored(tmp_path) -> None:
    document = GraphDirectory(tmp_path).from_template("pendulum")
    for epochs in (1, 2, 3, 4):
        document.do({"op": "set", "id": "trainer", "params": {"epochs": epochs}})
    document.go_to(2)
    assert document.graph.nodes["trainer"].params["epochs"] == 2
    assert [row["number"] for row in document.past()] == [4, 3, 2, 1]
    document.go_to(4)
    assert document.graph.nodes["trainer"].params["epochs"] == 4
    document.go_to(0)
    assert canonical(document.graph) == canonical(template("pendulum"))


def test_existing_names_get_a_number_and_unsafe_characters_are_replaced(tmp_path) -> None:
    graphs = GraphDirectory(tmp_path)
    assert [graphs.from_template("cartpole").name for _ in range(2)] == ["cartpole", "cartpole-2"]
    assert graphs.new("../../etc/passwd", template("cartpole")).name == "etc/passwd"
    with pytest.raises(GraphError, match="not a valid name"):
        graphs.get("../x")
    with pytest.raises(GraphError, match="there is no graph"):
        graphs.get("ghost")


def test_a_program_and_a_graph_are_imported_and_invalid_text_is_refused(tmp_path) -> None:
    graphs = GraphDirectory(tmp_path)
    meant = template("cartpole").sha256()
    assert graphs.from_text("a", to_script(template("cartpole")))[0].graph.sha256() == meant
    assert graphs.from_text("b", canonical(template("cartpole")))[0].graph.sha256() == meant
    for text in (to_script(template("cartpole")), canonical(template("cartpole")), to_page(template("cartpole"))):
        assert graphs.from_text("marked", f"\ufeff{text}")[0].graph.sha256() == meant
    for text in ("{", "{}", "import os; os.system('x'", "[" * 5000):
        with pytest.raises(GraphError):
            graphs.from_text("c", text)
    with pytest.raises(GraphError, match="a JSON list; a graph is an object"):
        graphs.from_text("c", " [1]")


def test_a_graph_that_could_not_be_read_again_is_refused_when_it_is_created(tmp_path) -> None:
    graph = template("cartpole")
    graph.layout["env"] = (1e300, 0.0)
    with pytest.raises(GraphError, match="layout.env"):
        GraphDirectory(tmp_path).new("far", graph)
    assert not [*tmp_path.rglob("far*")]


@pytest.mark.parametrize("log", ["", '{"op":"open","gra'])
def test_a_log_that_a_crash_cut_off_at_its_first_line_does_not_empty_the_graph(log: str, tmp_path) -> None:
    save_graph(template("cartpole"), tmp_path / "mine.json")
    (tmp_path / ".history").mkdir()
    (tmp_path / ".history" / "mine.ndjson").write_text(log)
    assert GraphDirectory(tmp_path).get("mine").graph.sha256() == template("cartpole").sha256()
    assert load_graph(tmp_path / "mine.json").sha256() == template("cartpole").sha256()


def test_on_a_full_disk_nothing_changes_and_nothing_is_lost(tmp_path, monkeypatch) -> None:
    """The log cannot be written; then only the graph's file cannot be, which the next change writes again."""
    graphs = GraphDirectory(tmp_path)
    document = graphs.from_template("cartpole")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    before = (tmp_path / ".history" / "cartpole.ndjson").read_bytes()
    with monkeypatch.context() as disk:
        disk.setattr("os.fsync", full)
        for change in (lambda: document.do(EPOCHS), document.undo, lambda: graphs.new("other", Graph())):
            with suppress(OSError):
                assert change() is False
        assert document.graph == template("cartpole")
    assert (tmp_path / ".history" / "cartpole.ndjson").read_bytes() == before
    assert [each["name"] for each in graphs.names()] == ["cartpole"]
    with monkeypatch.context() as disk:
        disk.setattr("os.replace", full)
        document.do(EPOCHS)
    assert GraphDirectory(tmp_path).get("cartpole").graph.nodes["trainer"].params["epochs"] == 7
    assert load_graph(tmp_path / "cartpole.json").nodes["trainer"].params["epochs"] == 7
    with monkeypatch.context() as disk:
        disk.setattr("os.fsync", full)
        with pytest.raises(OSError):
            document.undo()
    assert document.graph.nodes["trainer"].params["epochs"] == 7
    assert document.undo()
    assert document.graph == template("cartpole")
    assert document.redo()


def test_a_deleted_graph_is_in_the_trash(tmp_path) -> None:
    graphs = GraphDirectory(tmp_path)
    graphs.from_template("cartpole")
    graphs.move_to_trash("cartpole")
    assert graphs.names() == []
    assert [file.name for file in (tmp_path / ".trash").glob("*/*.json")] == ["cartpole.json"]
    assert graphs.from_template("cartpole").past() == []


def test_graphs_are_in_folders_with_a_small_picture_and_leave_them_again(tmp_path) -> None:
    graphs = GraphDirectory(tmp_path)
    graphs.from_template("cartpole").do({"op": "remove", "id": "print"})
    graphs.rename("cartpole", "first/poles").save_version("before")
    (row,) = graphs.names()
    assert row["name"] == "first/poles"
    assert "agent" in row["graph"]["nodes"]
    assert len(row["graph"]["edges"]) == 14
    graphs.move_to_trash("first/poles")
    assert graphs.names() == []
    (item,) = graphs.trash()
    assert item["name"] == "first/poles"
    restored = graphs.restore(item["item"])
    assert (restored.name, len(restored.history.done), len(restored.versions())) == ("first/poles", 1, 1)
    assert graphs.rename("first/poles", "poles").name == "poles"
    assert graphs.rename("poles", "poles").name == "poles"
    assert not (tmp_path / "first").exists()
    for bad in ("a/b/c", "/a", "a/", ".history/a", "a/../b"):
        with pytest.raises(GraphError, match="not a valid name"):
            graphs.get(bad)


def test_a_named_version_outlives_the_history_and_a_file_that_is_no_graph_has_no_picture(tmp_path) -> None:
    graphs = GraphDirectory(tmp_path)
    document = graphs.from_template("cartpole")
    document.save_version(" good ")
    document.do({"op": "remove", "id": "print"})
    document.go_to(0)
    document.do({"op": "remove", "id": "agent"})
    (version,) = document.versions()
    assert version["name"] == "good"
    assert "agent" in version["graph"]["nodes"]
    (tmp_path / "broken.json").write_text("{}")
    assert {row["name"]: row["graph"] is None for row in graphs.names()} == {"cartpole": False, "broken": True}


def test_links_to_nowhere_and_directories_are_not_listed(tmp_path) -> None:
    """Another program may delete a file while the directory is read; the page must open nevertheless."""
    graphs = GraphDirectory(tmp_path)
    graphs.new("kept", template("cartpole"))
    (tmp_path / "gone.json").symlink_to(tmp_path / "nowhere")
    (tmp_path / "folder.json").mkdir()
    assert [each["name"] for each in graphs.names()] == ["kept"]
