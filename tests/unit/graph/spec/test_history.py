"""The operation log: every change knows its undoing, and the file is the graph."""

from surefoot.graph.spec.history import History
from surefoot.graph.spec.text import canonical, to_json
from surefoot.graph.templates import template


def test_a_killed_editor_loses_at_most_the_line_it_was_writing(tmp_path) -> None:
    file = tmp_path / "log.ndjson"
    history = History(template("cartpole"), file)
    history.do({"op": "set", "id": "trainer", "params": {"epochs": 3}})
    history.do({"op": "remove", "id": "print"})
    history.undo()
    kept = canonical(history.graph)
    with open(file, "a") as log:
        log.write('{"op": "remove", "id": "en')
    again = History(file=file)
    assert canonical(again.graph) == kept
    assert again.redo()
    assert "print" not in again.graph.nodes
    assert again.undo()
    assert again.undo()
    assert not again.undo()
    assert canonical(again.graph) == canonical(template("cartpole"))


def test_another_graph_in_its_place_can_be_taken_back() -> None:
    history = History(template("cartpole"))
    before = canonical(history.graph)
    history.do({"op": "replace", "graph": to_json(template("pendulum"))})
    assert canonical(history.graph) == canonical(template("pendulum"))
    history.undo()
    assert canonical(history.graph) == before
