"""The judge of readability: damaged copies differ, and too few texts are refused."""

from __future__ import annotations

import random

import pytest
from lm_helpers import tiny_encoder

from surefoot.errors import DataError
from surefoot.lm.rewards.readable import Readable, damaged

TEXT = "the quick brown fox jumps over the lazy dog near the river"


def test_damaged_copies_differ_and_keep_their_beginning_or_end():
    rng = random.Random(0)
    copies = [damaged(TEXT, rng) for _ in range(40)]
    assert sum(copy != TEXT for copy in copies) >= 36
    assert all(copy.split()[0] == "the" or copy.split()[-1] == "river" for copy in copies)


def test_most_of_its_own_texts_pass_and_a_word_alone_does_not(tmp_path):
    rng = random.Random(1)
    texts = [" ".join(rng.sample(TEXT.split(), 6)) for _ in range(50)]
    readable = Readable(texts, model=tiny_encoder(tmp_path))
    assert readable(texts).mean() >= 0.9
    assert readable(["two words"]).tolist() == [False]


def test_few_texts_are_refused():
    with pytest.raises(DataError, match="too few to learn readability"):
        Readable(["one two three four"] * 3)
