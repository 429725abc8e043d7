import math
from pathlib import PurePosixPath

import numpy as np

from surefoot.telemetry.files.json_numbers import evaluation_fields, finite, plain_json


def test_finite_numbers_pass_unchanged():
    bad: dict[str, str] = {}
    assert finite({"a": 1.5, "b": 2}, "m", bad) == {"a": 1.5, "b": 2}
    assert bad == {}


def test_each_non_finite_number_is_named():
    bad: dict[str, str] = {}
    assert finite({"a": math.nan, "b": -math.inf, "c": math.inf, "d": 1.0}, "m", bad) == {
        "a": None,
        "b": None,
        "c": None,
        "d": 1.0,
    }
    assert bad == {"m.a": "nan", "m.b": "-inf", "m.c": "inf"}


def test_numbers_that_only_overflow_when_added_are_kept():
    bad: dict[str, str] = {}
    assert finite({"a": 1e308, "b": 1e308}, "m", bad) == {"a": 1e308, "b": 1e308}
    assert bad == {}


def test_a_missing_number_hides_no_other():
    bad: dict[str, str] = {}
    assert finite({"a": None, "b": math.inf}, "", bad) == {"a": None, "b": None}
    assert bad == {"b": "inf"}


def test_settings_of_any_kind_become_plain():
    bad: dict[str, str] = {}
    config = {"lr": np.float32(0.5), "hidden": (64, 64), "low": np.array([1, 2]), "out": PurePosixPath("a/b")}
    assert plain_json(config, "config", bad) == {"lr": 0.5, "hidden": [64, 64], "low": [1, 2], "out": "a/b"}
    assert bad == {}


def test_infinity_deep_in_the_settings_is_named():
    bad: dict[str, str] = {}
    assert plain_json({"clip": {"range": [1.0, math.inf]}}, "config", bad) == {"clip": {"range": [1.0, None]}}
    assert bad == {"config.clip.range.1": "inf"}


def test_an_evaluation_has_the_population_deviation_and_names_its_non_finite_returns():
    fields = evaluation_fields([1.0, 5.0], [10, 20], [True, None])
    assert (fields["return_mean"], fields["return_std"], fields["length_mean"]) == (3.0, 2.0, 15.0)
    assert (fields["episodes"], fields["success_rate"], fields["nonfinite"]) == (2, 1.0, {})
    assert evaluation_fields([1.0, math.inf], [1, 1], [])["nonfinite"] == {
        "return.mean": "inf",
        "return.std": "nan",
        "return.max": "inf",
        "returns.1": "inf",
    }
