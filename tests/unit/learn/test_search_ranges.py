"""Ranges: read as people write them, changed, refused."""

from __future__ import annotations

import random

import pytest

from surefoot.errors import ConfigError
from surefoot.learn.config import PPOConfig
from surefoot.learn.search_ranges import (
    MOVING,
    SEARCH,
    SEARCH_CONTINUOUS,
    Choice,
    Range,
    changed,
    dimension,
    label,
    nearby,
    read_space,
)
from surefoot.nets.config import NetConfig
from surefoot.train.config import CollectConfig


def test_ranges_are_read_as_they_are_written():
    assert dimension("lr", {"low": "1e-5", "high": 1e-2, "log": True}) == Range(1e-5, 1e-2, log=True)
    assert dimension("epochs", {"low": 3, "high": 20, "whole": True}) == Range(3, 20, whole=True)
    assert dimension("hidden", [[64, 64], [256]]) == Choice(((64, 64), (256,)))
    assert dimension("lr", None) is None


@pytest.mark.parametrize(
    "spec",
    [
        {"low": 1.0},
        {"low": 2, "high": 1},
        {"low": 0, "high": 1, "log": True},
        {"low": 1, "high": 2, "step": 1},
        {"low": "x", "high": 1},
        {"low": 0.5, "high": 2, "whole": True},
        "1e-3",
        [],
    ],
    ids=str,
)
def test_what_is_no_range_is_refused(spec):
    with pytest.raises(ConfigError):
        dimension("lr", spec)


def test_null_takes_a_setting_out_and_others_stay():
    space = changed({"lr": Range(1, 2), "clip": Range(1, 2)}, {"lr": None, "gamma": [0.9, 0.99]})
    assert space == {"clip": Range(1, 2), "gamma": Choice((0.9, 0.99))}


def test_a_range_grows_until_the_base_is_in_it():
    assert Range(1e-5, 1e-3, log=True).with_value(1e-2) == Range(1e-5, 1e-2, log=True)
    assert Choice((4, 8)).with_value(1) == Choice((4, 8, 1))
    assert Choice(((64, 64),)).with_value([64, 64]) == Choice(((64, 64),))


def test_true_and_one_are_two_choices():
    assert label(True) != label(1)
    assert Choice((True,)).with_value(1) == Choice((True, 1))


def test_every_range_we_ship_is_of_a_knob_and_legal_at_both_ends():
    for name, dim in {**SEARCH, **SEARCH_CONTINUOUS}.items():
        (owner,) = [c for c in (PPOConfig, NetConfig, CollectConfig) if name in c.__dataclass_fields__]
        for value in dim.values if isinstance(dim, Choice) else (dim.low, dim.high):
            owner().replace(**{name: value})


def test_a_file_without_ranges_is_refused(tmp_path):
    path = tmp_path / "space.yaml"
    path.write_text("# nothing\n")
    with pytest.raises(ConfigError, match="no ranges"):
        read_space(path)
    with pytest.raises(ConfigError, match="cannot read ranges"):
        read_space(tmp_path / "nowhere.yaml")


def test_what_may_move_are_knobs_of_the_learner():
    assert set(PPOConfig.__dataclass_fields__) >= MOVING
    assert not {"envs", "seed", "optimizer", "device"} & MOVING


def test_nearby_settings_are_close_by_or_drawn_anew_and_never_out_of_range():
    space = {"lr": Range(1e-4, 1e-2, log=True), "epochs": Range(3, 20, whole=True), "lam": Choice((0.8, 0.9, 1.0))}
    rng, base = random.Random(0), {"lr": 9e-3, "epochs": 3, "lam": 0.8}
    found = [nearby(space, base, {"lr", "epochs", "lam"}, rng) for _ in range(300)]
    assert all(1e-4 <= one["lr"] <= 1e-2 and 3 <= one["epochs"] <= 20 for one in found)
    assert all(type(one["epochs"]) is int for one in found)
    times = [round(one["lr"] / 9e-3, 6) for one in found]
    assert times.count(0.8) > 80  # 37 % of the draws
    assert times.count(round(1e-2 / 9e-3, 6)) > 80  # 1.2 times as much would be out of range
    assert {one["lam"] for one in found} == {0.8, 0.9, 1.0}
    assert sum(one["lam"] == 1.0 for one in found) < 60  # two steps away: only when drawn anew


def test_a_setting_that_may_not_move_stays_and_a_zero_does_move():
    space = {"hidden": Choice(((8,), (16,))), "bias": Range(-1.0, 1.0)}
    found = [nearby(space, {"hidden": (8,), "bias": 0.0}, {"bias"}, random.Random(seed)) for seed in range(20)]
    assert {one["hidden"] for one in found} == {(8,)}
    assert all(one["bias"] != 0.0 for one in found)
