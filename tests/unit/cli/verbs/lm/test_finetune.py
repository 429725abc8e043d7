"""`surefoot lm sft` and `reward`: unknown settings are named."""

from __future__ import annotations

import pytest

from surefoot.cli.main import main


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["lm", "sft", "--model", "m", "--data", "d", "-o", "o", "--set", "clip=0.1"], "does not apply to fine-tuning"),
        (["lm", "reward", "--model", "m", "--pairs", "d", "-o", "o", "--set", "epoch=1"], "did you mean epochs"),
    ],
)
def test_an_unknown_setting_is_named(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 64
    assert message in capsys.readouterr().err
