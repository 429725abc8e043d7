"""Features of a query beside its vector."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.decide.tools.query_features import SIZE, VOCABULARY, detect_cues, encode_features, weighted
from surefoot.errors import ConfigError


def test_the_shipped_vocabulary_has_its_order():
    assert (len(VOCABULARY), VOCABULARY[0], VOCABULARY[-1], SIZE) == (20, "QUESTION", "GREETING", 25)


def test_cues_come_in_the_order_of_the_vocabulary():
    assert detect_cues("hello, what is 3 * 4?") == ["QUESTION", "NUMBER", "EXPRESSION", "DEFINE", "GREETING"]


def test_numbers_are_capped_and_the_mode_is_one_hot():
    row = encode_features(["NUMBER"], context=5, scales=3, activated=40, retrieval="fused")
    assert row[VOCABULARY.index("NUMBER")] == 1.0
    assert row[20:].tolist() == [0.5, 1.0, 1.0, 0.0, 1.0]
    assert np.linalg.norm(weighted(row)) == pytest.approx(0.25)


def test_an_unknown_cue_is_refused():
    with pytest.raises(ConfigError, match="unknown cue 'SMELL'"):
        encode_features(["SMELL"], context=0, scales=0, activated=0, retrieval="fast")
