"""`surefoot serve`: the options, without starting a server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from surefoot.cli.main import main, read_arguments


def test_the_api_description_is_printed_without_a_server(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--openapi"]) == 0
    assert "/v1/policies" in json.loads(capsys.readouterr().out)["paths"]


def test_the_number_of_replicas_is_limited(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--replicas", "257"]) == 64
    assert "--replicas is 257; it must be 0 to 256" in capsys.readouterr().err


def test_options_of_the_earlier_server_are_accepted() -> None:
    args = read_arguments(
        "serve", ["--compat", "directive-023", "--input-dim", "8", "--min-buffer-size=4", "--dir", "d"]
    )
    assert args.set == ("input_dim=8", "min_buffer_size=4")
    assert args.data_dir == Path("d")


def test_an_unknown_option_of_the_earlier_server_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["--compat", "directive-023", "--compat-option", "inputdim=8", "--data-dir", str(tmp_path / "d")]
    assert main(["serve", *words]) == 64
    assert "did you mean input_dim" in capsys.readouterr().err
