"""Operations in words."""

from surefoot.server.studio.op_text import describe, moves_of


def test_changes_are_described_in_words() -> None:
    move = {"op": "move", "id": "a", "at": [0, 0]}
    assert describe({"op": "batch", "ops": [move, move]}) == "move 2 nodes"
    assert describe({"op": "within", "graph": "g", "do": {"op": "remove", "id": "x"}}) == "in g: remove x"
    assert describe({"op": "batch", "ops": [{"op": "remove", "id": "x"}, move]}) == "remove x and 1 more"
    assert describe({"op": "mode", "id": "x", "mode": "mute"}) == "mute x"
    assert moves_of({"op": "batch", "ops": [move]}) == {"a": [0, 0]}
    assert moves_of({"op": "remove", "id": "x"}) is None
