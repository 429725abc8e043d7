"""`surefoot telemetry compare`: seeds together, settings apart."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from surefoot.cli.main import main
from surefoot.telemetry.schema import Episodes
from surefoot.telemetry.writer import Recorder
from surefoot.train.diagnose.compare_runs import chance

SAMPLES = Path(__file__).parents[4] / "samples" / "telemetry"


def write(root: Path, name: str, seed: int, lr: float, returns: list[float], *, evaluate: float | None = None) -> str:
    folder = root / name
    folder.mkdir()
    with Recorder(folder, name, updates_per_second=1e9) as recorder:
        recorder.header(env="CartPole-v1", seed=seed, config={"ppo": {"lr": lr, "seed": seed}})
        for number, score in enumerate(returns, 1):
            episodes = Episodes.of([score], [1])
            recorder.update(env_steps=64 * number, updates=number, m={"approx_kl": lr}, episodes=episodes)
        if evaluate is not None:
            recorder.eval(returns=[evaluate], lengths=[1])
    return str(folder)


@pytest.fixture
def runs(tmp_path: Path) -> list[str]:
    fast = [write(tmp_path, f"fast-{s}", s, 0.1, [0.0, 100.0 + 10 * s]) for s in range(4)]
    slow = [write(tmp_path, f"slow-{s}", s, 0.2, [0.0, 50.0]) for s in range(2)]
    return fast + slow


def told(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    assert main(["telemetry", "compare", *argv, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_seeds_are_put_together_and_settings_apart(runs: list[str], capsys: pytest.CaptureFixture[str]):
    found = told(capsys, *runs)
    fast, slow = found["groups"]
    assert (fast["label"], fast["count"], slow["label"], slow["count"]) == ("lr=0.1", 4, "lr=0.2", 2)
    assert fast["scores"] == [100.0, 110.0, 120.0, 130.0]
    assert fast["iqm"] == 115.0
    assert 100.0 <= fast["low"] < 115.0 < fast["high"] <= 130.0
    assert found["different"] == {"ppo.lr": ["0.1", "0.2"]}
    assert found["first_above_second"] == 1.0


def test_evaluations_count_where_every_run_has_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    a = write(tmp_path, "a", 0, 0.1, [1.0], evaluate=7.0)
    b = write(tmp_path, "b", 0, 0.2, [2.0], evaluate=9.0)
    c = write(tmp_path, "c", 0, 0.3, [3.0])
    assert [g["scores"] for g in told(capsys, a, b)["groups"]] == [[7.0], [9.0]]
    assert [g["scores"] for g in told(capsys, a, b, c)["groups"]] == [[1.0], [2.0], [3.0]]


def test_any_number_can_be_compared(runs: list[str], capsys: pytest.CaptureFixture[str]):
    assert [g["iqm"] for g in told(capsys, *runs, "--metric", "approx_kl")["groups"]] == pytest.approx([0.1, 0.2])


def test_old_logs_are_compared_by_their_names(capsys: pytest.CaptureFixture[str]):
    files = [str(SAMPLES / f"v{v}" / "full.ndjson") for v in ("1.0", "1.1")]
    found = told(capsys, *files, "--metric", "loss")
    assert [g["count"] for g in found["groups"]] == [1, 1]


def test_the_table_says_what_was_set_and_who_is_above(runs: list[str], capsys: pytest.CaptureFixture[str]):
    assert main(["telemetry", "compare", *runs]) == 0
    out = capsys.readouterr().out
    assert "ppo.lr: 0.1 | 0.2" in out
    assert "'lr=0.1' is above one of 'lr=0.2' in 100% of the pairs" in out


def test_one_seed_has_no_interval(runs: list[str], capsys: pytest.CaptureFixture[str]):
    assert main(["telemetry", "compare", runs[0]]) == 0
    assert "one seed: none" in capsys.readouterr().out


def test_the_picture_has_a_curve_a_group_and_a_band_where_there_are_seeds(runs: list[str], tmp_path: Path):
    out = tmp_path / "deep" / "c.svg"
    assert main(["telemetry", "compare", *runs[:5], "-o", str(out)]) == 0
    tree = ET.parse(out).getroot()
    names = [node.tag.rpartition("}")[2] for node in tree]
    assert (names.count("polyline"), names.count("polygon")) == (2, 1)
    line = next(node for node in tree if node.tag.endswith("polyline"))
    ys = [float(point.split(",")[1]) for point in line.attrib["points"].split()]
    assert ys == sorted(ys, reverse=True), "the return rises, so y falls"


@pytest.mark.parametrize(
    ("argv", "code", "sentence"),
    [
        ([], 64, "no RUN given"),
        (["gone"], 2, "no run called"),
        ([str(SAMPLES / "v2.0" / "full.ndjson"), "--metric", "moon"], 2, "has no metric moon; it has"),
    ],
)
def test_what_is_refused(argv: list[str], code: int, sentence: str, capsys: pytest.CaptureFixture[str]):
    assert main(["telemetry", "compare", *argv]) == code
    assert sentence in capsys.readouterr().err


def test_ties_count_half():
    assert chance([1.0, 2.0], [1.0, 3.0]) == pytest.approx((0.5 + 0 + 1 + 0) / 4)
