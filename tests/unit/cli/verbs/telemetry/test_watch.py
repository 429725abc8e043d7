"""`surefoot telemetry watch` on files that grow under its eyes, and the hook its alerts go to."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from surefoot.cli.main import main
from surefoot.cli.verbs.telemetry.watch import WatchArgs
from surefoot.telemetry.writer import Recorder

SAMPLES = Path(__file__).parents[4] / "samples" / "telemetry"


@pytest.fixture(autouse=True)
def _runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SUREFOOT_RUNS", str(tmp_path / "runs"))
    monkeypatch.chdir(tmp_path)


def watch(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, list[dict[str, Any]], str]:
    code = main(["telemetry", "watch", *argv, "--json"])
    captured = capsys.readouterr()
    return code, [json.loads(line) for line in captured.out.splitlines()], captured.err


def write(folder: Path, losses: list[float], *, reason: Any = "finished") -> Path:
    with Recorder(folder, "r", updates_per_second=1e9) as recorder:
        recorder.header(env="x", seed=0, config={})
        for number, loss in enumerate(losses, 1):
            recorder.update(env_steps=number, updates=number, m={"loss": loss})
        recorder.close(reason)
    return folder


def test_a_run_that_is_well_ends_with_zero(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    assert watch(capsys, str(write(tmp_path, [1.0, 2.0])), "--loss-threshold", "5") == (0, [], "")


def test_the_first_breach_does_not_end_the_watch(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    folder = write(tmp_path, [9.0, 1.0, 1.0, 1.0, 9.0])
    code, told, _ = watch(capsys, str(folder), "--loss-threshold", "5")
    assert [(alert["status"], alert["update"]) for alert in told] == [("open", 1), ("resolved", 4), ("open", 5)]
    assert code == 1


def test_exit_on_ends_it_at_once(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    folder = write(tmp_path, [9.0, 1.0, 1.0, 1.0, 99.0, 1.0])
    code, told, _ = watch(capsys, str(folder), "--rule", "loss>5", "--rule", "loss>50:1:error", "--exit-on", "error")
    assert (code, told[-1]["title"], told[-1]["update"]) == (1, "loss above 50", 5)


def test_a_run_that_diverged_is_a_finding(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    code, told, _ = watch(capsys, str(write(tmp_path, [1.0], reason="diverged")))
    assert (code, told[-1]["severity"]) == (1, "fatal")


def test_old_logs_are_watched_by_their_own_flags(capsys: pytest.CaptureFixture[str]):
    log = str(SAMPLES / "v1.1" / "full.ndjson")  # data_mode goes rollout, mixed, replay, …; 27 events and one more each
    code, told, _ = watch(capsys, log, "--once", "--queue-events-min", "29.5", "--grad-threshold", "100")
    assert code == 1
    assert [(alert["title"], alert["update"]) for alert in told] == [("queue_conflict_events below 29.5", 1)]
    assert watch(capsys, log, "--idle-exit", "0.05") == (0, [], "")


@pytest.mark.parametrize(
    ("argv", "code", "sentence"),
    [
        (["gone", "--once"], 2, "no run called 'gone'"),
        (["x", "--webhook", "http://example.org/x"], 64, "is refused"),
        (["x", "--rule", "loss"], 2, "is not a rule"),
        (["x", "--rules", "gone.yaml"], 2, "no rules at gone.yaml"),
    ],
)
def test_what_is_refused(capsys: pytest.CaptureFixture[str], argv: list[str], code: int, sentence: str):
    got, _, err = watch(capsys, *argv)
    assert got == code
    assert sentence in err


def reaction(folder: Path, monkeypatch: pytest.MonkeyPatch) -> float:
    """Seconds from a line to what is said of it, where the watch began before there was a run."""
    heard: list[float] = []
    monkeypatch.setattr(WatchArgs, "_say", lambda *_: heard.append(time.monotonic()))
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(WatchArgs(run_name=folder.name, rule=("loss>5",)).run()))
    thread.start()
    time.sleep(0.25)
    folder.mkdir(parents=True)
    with Recorder(folder, folder.name, updates_per_second=1e9) as recorder:
        recorder.header(env="x", seed=0, config={})
        recorder.update(env_steps=1, updates=1, m={"loss": 9.0})
        written = time.monotonic()
        while not heard and time.monotonic() < written + 30:
            time.sleep(0.01)
    thread.join(30)
    assert codes == [1]
    return heard[0] - written


def test_it_starts_before_the_run_and_reacts_within_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    # Once of three: a busy machine may take its time.
    assert any(reaction(tmp_path / "runs" / f"later{n}", monkeypatch) < 1.0 for n in range(3))


def test_alerts_go_to_a_hook_on_this_machine(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, hook: tuple[str, list[dict[str, Any]]]
):
    url, got = hook
    _, told, _ = watch(capsys, str(write(tmp_path, [9.0])), "--loss-threshold", "5", "--webhook", url)
    assert got == told
    assert got[0]["title"] == "loss above 5"
