"""`surefoot export` from the command line."""

from __future__ import annotations

import json
import shutil

import pytest

from surefoot.cli.main import main

pytest.importorskip("onnxruntime")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    quick = ["--set", "envs=2", "--set", "rollout_steps=32", "--eval-every", "0", "--display", "quiet"]
    assert main(["train", "Pendulum-v1", "--steps", "64", "--name", "swing", "--runs", str(root), *quick]) == 0
    return root


def test_a_run_is_exported_into_its_own_directory(runs, capsys):
    assert main(["export", "swing", "--runs", str(runs)]) == 0
    said = capsys.readouterr().out
    contract = json.loads((runs / "swing" / "onnx" / "contract.json").read_text())
    assert (runs / "swing" / "onnx" / "model.onnx").stat().st_size == contract["model"]["bytes"]
    assert contract["from"]["run"] == "swing"
    assert contract["outputs"][0]["low"] == -2.0
    assert "answers to 1,000 observations (500 of them from the env)" in said


def test_json_prints_the_contract(runs, tmp_path, capsys):
    assert main(["export", "swing", "--runs", str(runs), "-o", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads((tmp_path / "contract.json").read_text())


def test_an_export_is_read_back(runs, tmp_path, capsys):
    assert main(["export", "swing", "--runs", str(runs), "-o", str(tmp_path)]) == 0
    contract = json.loads((tmp_path / "contract.json").read_text())
    capsys.readouterr()
    assert main(["export", "--check", str(tmp_path)]) == 0
    assert f"SHA-256 {contract['model']['sha256']}\n" in capsys.readouterr().out
    assert main(["export", str(tmp_path), "--check", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["examples"] == 3
    (tmp_path / "model.onnx").write_bytes(b"")
    assert main(["export", "--check", str(tmp_path)]) == 2
    assert "is not the model of the contract: it has 0 bytes" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler here")
def test_a_run_is_exported_to_a_header(runs, tmp_path, capsys):
    assert main(["export", "swing", "--runs", str(runs), "--to", "c", "-o", str(tmp_path / "swing.h")]) == 0
    said = capsys.readouterr().out
    text = (tmp_path / "swing.h").read_text()
    assert f"→ {tmp_path / 'swing.h'} ({len(text):,} bytes)\n" in said
    assert "out  action float32[1]  mean float32[1]  std float32[1]  value float32\n" in said
    assert '#define SWING_RUN "swing"' in text
    assert main(["export", "swing", "--runs", str(runs), "--to", "c", "-o", str(tmp_path / "a-b.h")]) == 2
    assert "'a-b' cannot be a prefix in C" in capsys.readouterr().err


def test_a_checkpoint_that_is_not_there_is_named(runs, capsys):
    assert main(["export", "swing", "--runs", str(runs), "--checkpoint", "7"]) == 2
    assert "no checkpoint '7'" in capsys.readouterr().err


def test_a_mask_for_a_policy_without_choices_is_refused(runs, tmp_path, capsys):
    assert main(["export", "swing", "--runs", str(runs), "-o", str(tmp_path / "x"), "--masks", "on"]) == 2
    assert "only discrete actions can be masked" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_a_run_that_is_not_there_is_refused(tmp_path, capsys):
    assert main(["export", "nobody", "--runs", str(tmp_path)]) == 2
    assert "no run called 'nobody'" in capsys.readouterr().err
