"""`surefoot lm ppo`: which settings belong to which part."""

from __future__ import annotations

import pytest

from surefoot.cli.main import main
from surefoot.cli.verbs.lm.train import settings
from surefoot.errors import ConfigError


def test_settings_are_divided_between_the_language_model_and_ppo() -> None:
    assert settings({"beta": "0.1", "lr": "1e-5", "steps": "3"}) == ({"beta": "0.1", "steps": "3"}, {"lr": "1e-5"})


@pytest.mark.parametrize(
    ("name", "message"),
    [("nll_limt", "did you mean nll_limit"), ("learnin_rate", "learning_rate"), ("qqq", "surefoot knobs --lm")],
)
def test_an_unknown_setting_is_named_with_the_nearest_of_both_parts(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        settings({name: "1"})


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["lm", "ppo"], "--model is missing"),
        (["lm", "ppo", "--model", "m", "--prompts", "p"], "--reward is missing"),
    ],
)
def test_what_is_missing_or_unknown_is_named(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 64
    assert message in capsys.readouterr().err
