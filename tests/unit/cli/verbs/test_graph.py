"""`surefoot graph`: check, diff, render and list graphs; contradictory options are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from surefoot.cli.main import main


def test_a_template_has_no_errors_and_equals_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["graph", "check", "cartpole"]) == 0
    assert "no errors" in capsys.readouterr().out
    assert main(["graph", "diff", "cartpole", "cartpole"]) == 0
    assert capsys.readouterr().out == "no difference\n"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cartpol", "did you mean cartpole?"),
        ("no.json", "cannot read a graph from no.json: No such file or directory\n"),
    ],
)
def test_a_graph_that_does_not_exist_is_one_sentence(
    name: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["graph", "check", name]) == 2
    assert message in capsys.readouterr().err


def test_a_workflow_that_was_saved_with_a_byte_order_mark_is_imported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (Path(__file__).parents[3] / "samples" / "graph" / "Cartpole_PPO.json").read_text(encoding="utf-8")
    (tmp_path / "marked.json").write_text(text, encoding="utf-8-sig")
    assert main(["graph", "import", str(tmp_path / "marked.json")]) == 0
    assert json.loads(capsys.readouterr().out)["nodes"]["agent3"]["type"] == "PPOAgentNode"


def test_a_changed_seed_is_the_only_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["graph", "templates", "cartpole"]) == 0
    graph = json.loads(capsys.readouterr().out)
    graph["run"]["seed"] = 4711
    (tmp_path / "other.json").write_text(json.dumps(graph))
    assert main(["graph", "diff", "cartpole", str(tmp_path / "other.json"), "--json"]) == 1
    (change,) = json.loads(capsys.readouterr().out)
    assert (change["where"], change["after"]) == ("seed", 4711)


def test_an_image_is_printed_or_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["graph", "render", "cartpole"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("<svg")
    assert main(["graph", "render", "cartpole", "-o", str(tmp_path / "new" / "g.svg")]) == 0
    assert (tmp_path / "new" / "g.svg").read_text() == printed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--watch", "trainer.loss_info"], "--watch needs --engine interpreter"),
        (["--keep", "c"], "--keep needs --engine interpreter"),
        (["--engine", "interpreter", "--keep", "c", "--watch", "trainer.loss_info"], "and no --watch"),
    ],
)
def test_options_of_the_interpreter_are_refused_elsewhere(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["graph", "run", "cartpole", *words]) == 64
    assert message in capsys.readouterr().err


def test_a_file_that_is_no_graph_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.json").write_text("{")
    for verb in ("check", "import"):
        assert main(["graph", verb, str(tmp_path / "x.json")]) == 2
        assert len(capsys.readouterr().err.strip().splitlines()) == 1
