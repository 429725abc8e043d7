"""A spread over the matrix of observations, actions, memory and agents: each cell learns its known answer."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import matrix

SPREAD = [
    matrix.Cell("flat", "discrete", "", True, "none", "one"),
    matrix.Cell("flat", "box", "gaussian", False, "none", "many"),
    matrix.Cell("flat", "box", "tanh", False, "none", "one"),
    matrix.Cell("flat", "hybrid", "tanh", False, "none", "central"),
    matrix.Cell("flat", "hybrid", "gsde", True, "none", "one"),
    matrix.Cell("flat", "multi", "", False, "gru", "one"),
    matrix.Cell("flat", "discrete", "", False, "lstm", "central"),
    matrix.Cell("flat", "multi", "", True, "gru", "many"),
    matrix.Cell("image", "discrete", "", False, "none", "one"),
    matrix.Cell("image", "discrete", "", True, "gru", "one"),
    matrix.Cell("dict", "hybrid", "beta", True, "none", "one"),
    matrix.Cell("dict", "multi", "", True, "none", "many"),
]


@pytest.mark.parametrize("cell", SPREAD, ids=lambda cell: "-".join(word for word in cell.words if word))
def test_a_cell_learns_its_known_answer_begins_at_a_ratio_of_one_and_resumes_exactly(cell):
    result = matrix.run(cell, seed=0)
    assert result.score >= matrix.BAR
    assert result.ratio_error <= matrix.RATIO_BAR
    assert result.exact


def test_the_spread_is_of_the_matrix_and_has_every_word_of_it():
    everything = matrix.cells()
    assert len(everything) == len(set(everything)) == 3 * 3 * 3 * 16
    assert set(SPREAD) <= set(everything)
    assert {word for cell in SPREAD for word in cell.words} == {word for cell in everything for word in cell.words}


def test_every_illegal_combination_is_refused_in_a_sentence():
    said = dict(matrix.refused())
    assert len(said) == 11
    for name, sentence in said.items():
        named = name.split(maxsplit=1)[0]
        assert len(sentence.split()) > 5, sentence
        if named in ("beta", "squash", "gsde"):
            assert f"{named}=True" in sentence
    assert "critic_only names 'state'" in said["a critic's part that is not there"]
