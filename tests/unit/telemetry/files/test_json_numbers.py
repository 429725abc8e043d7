import math
from pathlib import PurePosixPath

import numpy as np

from surefoot.telemetry.files.json_numbers import finite, finite_episodes, finite_rows, plain_json
from surefoot.telemetry.schema import Episodes


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


def test_a_row_is_named_by_its_number():
    bad: dict[str, str] = {}
    assert finite_rows([{"kl": 0.1}, {"kl": math.nan}], "epochs", bad) == [{"kl": 0.1}, {"kl": None}]
    assert bad == {"epochs.1.kl": "nan"}


def test_an_episode_summary_keeps_its_count():
    bad: dict[str, str] = {}
    summary = Episodes(count=2, return_mean=math.nan, return_min=0.0, return_max=1.0, length_mean=3.0)
    assert finite_episodes(summary, bad) == Episodes(count=2, return_min=0.0, return_max=1.0, length_mean=3.0)
    assert bad == {"episodes.return_mean": "nan"}


def test_settings_of_any_kind_become_plain():
    bad: dict[str, str] = {}
    config = {"lr": np.float32(0.5), "hidden": (64, 64), "low": np.array([1, 2]), "out": PurePosixPath("a/b")}
    assert plain_json(config, "config", bad) == {"lr": 0.5, "hidden": [64, 64], "low": [1, 2], "out": "a/b"}
    assert bad == {}


def test_infinity_deep_in_the_settings_is_named():
    bad: dict[str, str] = {}
    assert plain_json({"clip": {"range": [1.0, math.inf]}}, "config", bad) == {"clip": {"range": [1.0, None]}}
    assert bad == {"config.clip.range.1": "inf"}
