"""Connect Four: lines in every direction, draws, and a board that looks the same in a mirror."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.envs.builtin.connect_four import Connect
from surefoot.errors import ConfigError, EnvError


def play(moves: str, game: Connect | None = None) -> tuple[np.ndarray, bool, float]:
    """One board after moves by column digits: the state, whether it is over, the last mover's score."""
    game = game or Connect()
    state, over, score = game.start(1), np.zeros(1, bool), np.zeros(1)
    for move in moves:
        assert not over[0], f"over before {move}"
        state, over, score = game.play(state, np.array([int(move)]))
    return state, bool(over[0]), float(score[0])


@pytest.mark.parametrize(
    ("how", "moves"),
    [
        ("a column", "0101010"),
        ("a row", "0011223"),
        ("a row at the right edge", "3344556"),
        ("a rising diagonal", "01122323363"),
        ("a falling diagonal", "65544343303"),
    ],
)
def test_four_in_a_line_win(how: str, moves: str):
    _, over, score = play(moves)
    assert (over, score) == (True, 1.0), how


def test_three_do_not_win():
    assert play("010101")[1:] == (False, 0.0)
    assert play("001122")[1:] == (False, 0.0)


def test_a_line_does_not_run_from_the_top_of_a_column_into_the_next():
    # Column 0 holds X O X O X X from the bottom, column 1 begins with X X: four bits in a row but for the gap.
    game = Connect()
    mine = sum(1 << bit for bit in (4, 5, 7, 8))
    assert not game._has_line(np.array([mine], np.uint64))[0]
    assert game._has_line(np.array([0b1111], np.uint64))[0]


def test_a_full_board_is_a_draw():
    # Three in a row on 2 × 3: nobody gets one.
    state, over, score = play("012210", Connect(2, 3, 3))
    assert (over, score) == (True, 0.0), Connect(2, 3, 3).picture(state)
    assert Connect(2, 3, 3).mask(state).all(), "nobody moves there, and a mask must allow something"


def test_the_board_is_seen_by_who_moves_next():
    game = Connect()
    state, _, _ = play("3")
    seen = game.observe(state)[0].reshape(2, 6, 7)
    assert seen[0].sum() == 0, "none of my stones yet"
    assert seen[1, 0, 3] == 1.0
    state, _, _ = game.play(state, np.array([3]))
    seen = game.observe(state)[0].reshape(2, 6, 7)
    assert (seen[0, 0, 3], seen[1, 1, 3]) == (1.0, 1.0)
    assert game.picture(state).splitlines()[-2:] == ["...O...", "...X..."]


def test_a_full_column_is_closed_and_refused():
    state, _, _ = play("000000")
    assert Connect().mask(state).tolist() == [[False, *[True] * 6]]
    with pytest.raises(
        EnvError, match=r"column 0 of board 0 is full or outside; open columns are \[1, 2, 3, 4, 5, 6\]"
    ):
        play("0000000")
    with pytest.raises(EnvError, match="column 7"):
        play("7")


def test_boards_do_not_touch_each_other():
    game, rng = Connect(), np.random.default_rng(0)
    moves = [rng.integers(7, size=5) for _ in range(6)]
    together = game.start(5)
    alone = [game.start(1) for _ in range(5)]
    for move in moves:
        together, _, _ = game.play(together, move)
        alone = [game.play(board, move[i : i + 1])[0] for i, board in enumerate(alone)]
    assert np.array_equal(together, np.concatenate(alone, axis=1))


@pytest.mark.parametrize(("rows", "columns", "line"), [(0, 7, 4), (6, 0, 4), (8, 8, 4), (3, 3, 4), (6, 7, 1)])
def test_a_board_that_cannot_be_is_refused(rows: int, columns: int, line: int):
    with pytest.raises(ConfigError, match="a line must fit"):
        Connect(rows, columns, line)
