import sys
import types
from pathlib import Path
from typing import Any

import pytest

from surefoot.errors import TelemetryError
from surefoot.telemetry.export import trackers
from surefoot.telemetry.export.trackers import TrackMirror, open_mirror, to_tool
from surefoot.telemetry.schema import Episodes
from surefoot.telemetry.writer import Recorder


class RecordingTool:
    """A tool that stores its calls."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.config: Any = None
        self.rows: list[tuple[int, dict[str, float]]] = []
        self.ended: list[bool] = []
        self._fails_at = fails_at

    def begin(self, config: Any, t: float) -> None:
        self.config = config

    def log(self, tags: dict[str, float], step: int, t: float) -> None:
        if len(self.rows) == self._fails_at:
            raise OSError("no room")
        self.rows.append((step, tags))

    def end(self, *, failed: bool, t: float) -> None:
        self.ended.append(failed)


def write(folder: Path, mirrors: Any = (), *, reason: Any = "finished", updates: int = 4) -> Path:
    now = [1_700_000_000.0]
    recorder = Recorder(folder, "walk", mirrors=mirrors, clock=lambda: now[0], stopwatch=lambda: 0.0)
    recorder.header(env="X-v0", seed=0, config={"ppo": {"lr": 3e-4}})
    for number in range(1, updates + 1):
        now[0] += 0.4
        recorder.update(
            env_steps=number * 64, updates=number, m={"value_loss": 2.0, "odd": 1.0}, episodes=Episodes.of([9.0], [5])
        )
    recorder.eval(returns=[10.0], lengths=[3])
    recorder.close(reason)
    return folder


def test_a_tool_gets_numbers_under_the_names_of_others_over_env_steps(tmp_path: Path):
    tool = RecordingTool()
    write(tmp_path, [TrackMirror("tool", tool)])
    assert tool.config == {"ppo": {"lr": 3e-4}}
    step, tags = tool.rows[0]
    assert step == 64
    assert tags["train/value_loss"] == 4.0
    assert tags["losses/value_loss"] == 2.0
    assert tags["surefoot/odd"] == 1.0
    assert tags["rollout/ep_rew_mean"] == tags["charts/episodic_return"] == 9.0
    assert tool.rows[-1] == (256, {"eval/mean_reward": 10.0, "eval/episodic_return": 10.0, **tool.rows[-1][1]})
    assert tool.ended == [False]


def test_a_run_that_failed_is_told_to_have_failed(tmp_path: Path):
    tool = RecordingTool()
    write(tmp_path, [TrackMirror("tool", tool)], reason="diverged")
    assert tool.ended == [True]


def test_a_tool_that_fails_does_not_cost_the_run(tmp_path: Path):
    tool = RecordingTool(fails_at=2)
    with pytest.warns(
        UserWarning, match="tool failed .no room. and is not used again; the run and its record continue"
    ):
        write(tmp_path, [TrackMirror("tool", tool)])
    assert len(tool.rows) == 2
    assert b'"end"' in (tmp_path / "telemetry.ndjson").read_bytes()


def test_a_slow_tool_gets_one_update_a_second_and_every_evaluation(tmp_path: Path):
    tool = RecordingTool()
    write(tmp_path, [TrackMirror("tool", tool, every=1.0)], updates=8)
    assert [step for step, _ in tool.rows] == [64, 256, 448, 512]


def test_a_missing_package_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for module, extra in (("wandb", "track"), ("trackio", "trackio"), ("mlflow", "track")):
        monkeypatch.setitem(sys.modules, module, None)
        monkeypatch.setitem(sys.modules, f"{module}.tracking", None)
        with pytest.raises(TelemetryError, match=rf"{module} is not installed: pip install .surefoot.{extra}.."):
            open_mirror(module, tmp_path, run="walk")  # type: ignore[arg-type]


def test_what_fails_while_exporting_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write(tmp_path)
    monkeypatch.setitem(trackers._TOOLS, "wandb", (lambda out, run: RecordingTool(fails_at=0), 0.0))
    with pytest.raises(TelemetryError, match="no room"):
        to_tool("wandb", tmp_path, tmp_path / "out")


def test_wandb_is_only_ever_asked_to_stay_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    asked: list[dict[str, Any]] = []
    run = types.SimpleNamespace(log=lambda *a, **k: None, finish=lambda **k: None)
    fake = types.SimpleNamespace(Settings=dict, init=lambda **options: (asked.append(options), run)[1])
    monkeypatch.setitem(sys.modules, "wandb", fake)  # type: ignore[arg-type]
    to_tool("wandb", write(tmp_path), tmp_path / "out")
    assert asked[0]["mode"] == "offline"
    assert asked[0]["config"] == {"ppo": {"lr": 3e-4}}


def test_the_real_mlflow_keeps_every_number(tmp_path: Path):
    tracking = pytest.importorskip("mlflow.tracking")
    to_tool("mlflow", write(tmp_path / "run"), tmp_path / "out")
    client = tracking.MlflowClient(tracking_uri=(tmp_path / "out").as_uri())
    (run,) = client.search_runs([client.get_experiment_by_name("surefoot").experiment_id])
    assert run.data.params["ppo.lr"] == "0.0003"
    assert run.info.status == "FINISHED"
    history = client.get_metric_history(run.info.run_id, "train/value_loss")
    assert [(m.step, m.value) for m in history] == [(64, 4.0), (128, 4.0), (192, 4.0), (256, 4.0)]


def test_the_real_trackio_keeps_every_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("gradio_client")
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "out"))
    pytest.importorskip("trackio")
    import sqlite3

    to_tool("trackio", write(tmp_path / "run"), tmp_path / "out")
    (file,) = (tmp_path / "out").glob("*.db")
    with sqlite3.connect(file) as db:
        rows = db.execute("select step, metrics from metrics order by step").fetchall()
    assert [step for step, _ in rows][:4] == [64, 128, 192, 256]
    assert "train/value_loss" in str(rows[0][1])
