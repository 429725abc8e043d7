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


@pytest.mark.parametrize(("key", "text", "message"), [("rat", "1", "did you mean rate"), ("count", "x", "int")])
def test_a_wrong_key_or_value_is_named_with_the_keys_there_are(key: str, text: str, message: str) -> None:
    with pytest.raises(Usage, match=message) as caught:
        options_from(Options, {key: text}, "--set")
    assert "the keys are rate, count, fast" in str(caught.value)


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
