"""Values of options: KEY=VALUE pairs, dataclasses made from them, objects of the user's modules."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from surefoot.cli.options import at_least_one, options_from, pairs, split_settings, user_object
from surefoot.cli.usage import Usage


@dataclass(frozen=True, kw_only=True)
class Options:
    rate: float = 0.5
    count: int | None = None
    fast: bool = False


def test_pairs_split_at_the_first_equals_sign() -> None:
    assert pairs(("lr=3e-4", "note=a=b"), "--set") == {"lr": "3e-4", "note": "a=b"}
    for texts, message in ((("lr",), "is not KEY=VALUE"), (("=1",), "is not KEY=VALUE"), (("a=1", "a=2"), "twice")):
        with pytest.raises(Usage, match=message):
            pairs(texts, "--set")


def test_texts_become_the_types_of_the_fields() -> None:
    assert options_from(Options, {"rate": "2", "count": "3", "fast": "true"}, "--set") == Options(
        rate=2.0, count=3, fast=True
    )
    assert options_from(Options, {"count": "none"}, "--set").count is None


def test_a_wrong_key_is_answered_with_the_keys_there_are() -> None:
    with pytest.raises(Usage, match="did you mean rate.*the keys are rate, count, fast"):
        options_from(Options, {"rat": "1"}, "--set")


@pytest.mark.parametrize(
    ("key", "allowed"), [("count", "a whole number or none"), ("rate", "a number"), ("fast", "true or false")]
)
def test_a_wrong_value_is_answered_with_what_is_allowed(key: str, allowed: str) -> None:
    with pytest.raises(Usage, match=f"^--set {key}=x: {key} must be {allowed}$"):
        options_from(Options, {key: "x"}, "--set")


def test_settings_are_divided_between_a_verb_and_ppo() -> None:
    assert split_settings(Options, ("fast=1", "lr=0.1")) == (Options(fast=True), {"lr": "0.1"})


def test_counts_below_one_are_refused_by_the_name_of_the_option() -> None:
    at_least_one(jobs=1, seeds=None)
    with pytest.raises(Usage, match="--rollout-ticks is 0; it must be at least 1"):
        at_least_one(rollout_ticks=0)


def test_objects_of_the_user_are_imported_from_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rewards_of_mine.py").write_text("def polite(prompt, response):\n    return 1.0\n")
    monkeypatch.chdir(tmp_path)
    assert user_object("rewards_of_mine:polite", "--reward")("", "") == 1.0
    for name, message in (("polite", "module:function"), ("no_such:f", "cannot import"), ("json:nope", "has no nope")):
        with pytest.raises(Usage, match=message):
            user_object(name, "--reward")
