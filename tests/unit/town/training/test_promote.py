"""Candidates, releases and the comparison between them."""

from pathlib import Path

import numpy as np
import pytest

from surefoot.errors import CheckpointError
from surefoot.town.training.promote import Promotion, worse_measures


def test_a_candidate_passes_several_times_before_it_takes_over(tmp_path: Path) -> None:
    promotion = Promotion(required_passes=2)
    assert promotion.evaluated("a", [], failed=False) == "HOLD"
    assert promotion.evaluated("b", [], failed=False) == "HOLD"  # another one begins from nothing
    assert promotion.evaluated("b", [], failed=False) == "PROMOTE"
    promotion.promoted({"run": "b"})
    assert promotion.evaluated("c", ["worse"], failed=False) == "HOLD"
    assert promotion.evaluated("c", ["worse"], failed=True) == "FAIL"
    promotion.promoted({"run": "c"})
    promotion.save(tmp_path / "p.json")
    again = Promotion.load(tmp_path / "p.json")
    assert again.current_release == {"run": "c"}
    assert again.rolled_back() == {"run": "b"}
    assert again.rolled_back() is None
    with pytest.raises(CheckpointError, match="no promoted release"):
        again.rolled_back()


def test_the_comparison_knows_which_way_is_worse_and_what_chance_explains() -> None:
    rng = np.random.default_rng(0)
    good = {"waiting": rng.normal(5, 1, 64), "wages": rng.normal(2, 0.1, 64)}
    bad = {"waiting": rng.normal(9, 1, 64), "wages": rng.normal(1, 0.1, 64)}
    assert worse_measures(good, bad, ["waiting", "wages"]) == []
    assert len(worse_measures(bad, good, ["waiting", "wages"])) == 2
    same = {name: values + rng.normal(0, 0.01, 64) for name, values in good.items()}
    assert worse_measures(same, good, ["waiting", "wages"]) == []
