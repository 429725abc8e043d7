"""Minibatch sizes against hand arithmetic."""

from __future__ import annotations

import pytest

from surefoot.errors import ConfigError
from surefoot.learn.minibatches import minibatch_size_for, split_sizes


def test_a_remainder_is_shared_by_all_minibatches():
    assert split_sizes(2050, 64) == [65, 65] + [64] * 30


def test_a_large_remainder_becomes_a_minibatch():
    assert split_sizes(12, 8) == [6, 6]
    assert split_sizes(11, 8) == [11]


def test_fewer_samples_than_a_minibatch_are_one_minibatch_and_none_are_none():
    assert split_sizes(3, 64) == [3]
    assert split_sizes(0, 64) == []


def test_the_count_decides_if_only_it_is_set():
    assert minibatch_size_for(100, None, 4) == (25, None)
    assert minibatch_size_for(3, None, 4) == (1, None)


def test_with_both_settings_the_smaller_minibatch_counts_and_a_sentence_reports_it():
    size, note = minibatch_size_for(100, 50, 4)
    assert size == 25
    assert "minibatch_size is 50 and minibatches is 4" in str(note)
    assert minibatch_size_for(100, 10, 4)[0] == 10


def test_no_samples_are_refused():
    with pytest.raises(ConfigError, match="samples is 0; it must be at least 1"):
        minibatch_size_for(0, 64, None)
