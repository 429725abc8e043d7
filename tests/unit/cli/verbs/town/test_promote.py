"""`surefoot town promote`: rules from --set, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from surefoot.cli.main import main, read_arguments
from surefoot.cli.options import options_from, split_settings
from surefoot.cli.verbs.town.promote import PromoteOptions
from surefoot.town.training.promote import Gates


def test_settings_are_rules_of_the_promotion_or_of_the_gates() -> None:
    args = read_arguments(
        "town promote",
        ["r", *(word for text in ("required_passes=3", "episodes=8", "kl_threshold=0.5") for word in ("--set", text))],
    )
    rules, texts = split_settings(PromoteOptions, args.set)
    gates = options_from(Gates, texts, "--set")
    assert (rules.required_passes, rules.looks) == (3, None)
    assert (gates.episodes, gates.kl_threshold, gates.tolerance) == (8, 0.5, 0.02)


def test_a_run_that_does_not_exist_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["town", "promote", "gone", "--runs", str(tmp_path)]) == 2
    assert "no run called 'gone'" in capsys.readouterr().err
