"""`surefoot telemetry export`."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest

from surefoot.cli.main import main
from surefoot.telemetry.validate import validate

SAMPLES = Path(__file__).parents[4] / "samples" / "telemetry"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "walk"
    folder.mkdir()
    shutil.copy(SAMPLES / "v2.0" / "full.ndjson", folder / "telemetry.ndjson")
    return folder


@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("csv", "progress.csv"),
        ("monitor", "monitor.csv"),
        ("parquet", "telemetry.parquet"),
        ("townlet-1.1", "ppo.jsonl"),
    ],
)
def test_a_form_goes_beside_the_record(run: Path, form: str, name: str, capsys: pytest.CaptureFixture[str]):
    before = (run / "telemetry.ndjson").read_bytes()
    assert main(["telemetry", "export", str(run), "--to", form, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["out"] == str(run / name)
    assert (run / name).stat().st_size > 100
    assert (run / "telemetry.ndjson").read_bytes() == before


def test_the_flat_form_validates_as_1_1(run: Path, tmp_path: Path):
    out = tmp_path / "deep" / "flat.jsonl"
    assert main(["telemetry", "export", str(run), "--to", "townlet-1.1", "-o", str(out)]) == 0
    (found,) = validate(out, strict=True)
    assert (found.versions, found.errors, found.warnings) == ({"1.1": 12}, 0, 0)


def test_an_old_log_is_never_written_over(tmp_path: Path):
    log = tmp_path / "ppo.jsonl"
    shutil.copy(SAMPLES / "v1.2" / "full.ndjson", log)
    before = log.read_bytes()
    assert main(["telemetry", "export", str(log), "--to", "townlet-1.1"]) == 0
    assert main(["telemetry", "export", str(log), "--to", "townlet-1.1", "-o", str(log)]) == 0
    assert log.read_bytes() == before
    assert validate(tmp_path / "ppo-export.jsonl")[0].versions == {"1.1": 6}


def test_an_old_log_becomes_a_csv(tmp_path: Path):
    log = tmp_path / "old.jsonl"
    shutil.copy(SAMPLES / "v1.1" / "full.ndjson", log)
    assert main(["telemetry", "export", str(log), "--to", "csv"]) == 0
    rows = list(csv.DictReader((tmp_path / "old.csv").open()))
    assert len(rows) == 7
    assert float(rows[0]["train/loss"]) == json.loads(log.read_text().splitlines()[0])["loss_total"]


def test_tensorboard_gets_a_folder(run: Path, tmp_path: Path):
    pytest.importorskip("tensorboard")
    assert main(["telemetry", "export", str(run), "--to", "tensorboard", "-o", str(tmp_path / "tb")]) == 0
    assert len(list((tmp_path / "tb").glob("events*"))) == 1


def test_an_unknown_form_is_a_wrong_command_line(run: Path):
    assert main(["telemetry", "export", str(run), "--to", "papyrus"]) == 64
