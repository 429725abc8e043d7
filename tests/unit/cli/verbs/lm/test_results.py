"""`surefoot lm constitution` and `lm report`."""

from __future__ import annotations

import json

import pytest

from surefoot.cli.main import main


@pytest.mark.parametrize("words", [["walk"], ["run"], ["check"]])
def test_an_unknown_action_or_a_missing_argument_is_refused(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lm", "constitution", *words]) == 64
    assert "`run CONFIG.yaml`, `check TEXT` or `show`" in capsys.readouterr().err


def test_a_text_is_checked_against_the_principles_that_show_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lm", "constitution", "show"]) == 0
    names = {line.partition(" (")[0] for line in capsys.readouterr().out.splitlines()}
    code = main(["lm", "constitution", "check", "Good morning.", "--principles", "rules", "--json"])
    result = json.loads(capsys.readouterr().out)
    assert code == int(result["any_flagged"])
    assert set(result["flagged_principles"]) <= names
