import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.telemetry.export.page import flat, page_data, sparkline, summary_lines, write_report
from surefoot.telemetry.export.run_facts import gather
from surefoot.telemetry.reader import load_curves
from surefoot.telemetry.schema import Episodes
from surefoot.telemetry.writer import Recorder

Open = Callable[..., Recorder]


def data(folder: Path) -> dict[str, Any]:
    curves = load_curves(folder)
    return page_data(curves, gather(curves, running=False))


def panel(page: dict[str, Any], name: str) -> dict[str, Any]:
    return next(p for p in page["panels"] if p["name"] == name)


def test_a_short_run_is_drawn_point_by_point(tmp_path: Path, open_recorder: Open, clock: Any):
    recorder = open_recorder()
    recorder.header(env="CartPole-v1", seed=1, config={"ppo": {"lr": 0.1}}, command=["surefoot", "train", "a b"])
    for n, returns in ((1, [1.0, 3.0]), (2, []), (3, [4.0])):
        clock.now += 1
        recorder.update(
            env_steps=n * 10, updates=n, m={"entropy": n / 4}, episodes=Episodes.of(returns, [1] * len(returns))
        )
    recorder.eval(returns=[2.0, 4.0], lengths=[1, 1])
    page = data(tmp_path)
    assert page["x"] == {"env_steps": [10, 20, 30], "updates": [1, 2, 3], "elapsed": [1.0, 2.0, 3.0]}
    assert page["returns"] == {"mean": [2.0, None, 4.0], "min": [1.0, None, 4.0], "max": [3.0, None, 4.0]}
    assert panel(page, "entropy")["mean"] == [0.25, 0.5, 0.75]
    assert panel(page, "approx_kl")["healthy"] == (0.0, 0.02)
    assert (page["evals"]["mean"], page["evals"]["std"], page["evals"]["env_steps"]) == ([3.0], [1.0], [30])
    assert page["config"] == [("ppo.lr", "0.1")]
    assert page["reproduce"] == "surefoot train 'a b'"


def test_a_long_run_is_thinned_without_losing_its_peaks(tmp_path: Path, open_recorder: Open, clock: Any):
    recorder = open_recorder(sync_seconds=1e9)
    for n in range(1, 5001):
        clock.now += 1
        recorder.update(env_steps=n, updates=n, m={"grad_norm": 100.0 if n == 2502 else 1.0})
    page = data(tmp_path)
    curve = panel(page, "grad_norm")
    assert len(curve["mean"]) == len(page["x"]["updates"]) == 1000
    assert page["x"]["updates"][-1] == 5000
    assert max(curve["max"]) == 100.0
    assert max(curve["mean"]) == (100 + 4) / 5  # the mean of the five updates of that point
    assert set(curve["min"]) == {1.0}


def test_a_line_for_several_updates_keeps_its_range(tmp_path: Path, open_recorder: Open, clock: Any):
    recorder = open_recorder()
    recorder.update(env_steps=1, updates=1, m={"lr": 1.0})
    recorder.update(env_steps=2, updates=2, m={"lr": 1.0})
    recorder.update(env_steps=3, updates=3, m={"lr": 4.0})
    recorder.sync()
    curve = panel(data(tmp_path), "lr")
    assert (curve["mean"], curve["min"], curve["max"]) == ([1.0, 2.5], [1.0, 1.0], [1.0, 4.0])


def test_where_a_number_was_not_finite_is_marked(tmp_path: Path, open_recorder: Open, clock: Any):
    recorder = open_recorder()
    for n, loss in ((1, 1.0), (2, math.nan)):
        clock.now += 1
        recorder.update(env_steps=n, updates=n, m={"value_loss": loss})
    curve = panel(data(tmp_path), "value_loss")
    assert (curve["mean"], curve["bad"]) == ([1.0, None], [1])


def test_the_report_lies_beside_the_record_unless_told(tmp_path: Path, open_recorder: Open):
    open_recorder().event("hello")
    assert write_report(tmp_path) == tmp_path / "report.html"
    assert write_report(tmp_path / "telemetry.ndjson", tmp_path / "x.html") == tmp_path / "x.html"


def test_the_summary_says_the_same_in_text(tmp_path: Path, open_recorder: Open, clock: Any):
    with open_recorder() as recorder:
        recorder.header(env="CartPole-v1", seed=1, config={})
        for n in (1, 2):
            clock.now += 5
            recorder.update(env_steps=n * 100, updates=n, m={"approx_kl": 0.004}, episodes=Episodes.of([n * 10.0], [1]))
    with (tmp_path / "telemetry.ndjson").open("a") as file:
        file.write("torn")
    text = "\n".join(summary_lines(tmp_path))
    assert text.startswith("CartPole-v1 · walk-1 · finished")
    assert "env steps    200" in text
    assert "steps/s      20" in text
    assert "approx_kl          0.004  (healthy 0 to 0.02)" in text
    assert "10 ▁█ 20" in text
    assert "1 unreadable lines, the first: telemetry.ndjson:5: torn: 4 bytes" in text


def test_nested_settings_become_rows():
    assert flat({"ppo": {"lr": 0.5, "clip": None}, "net": "mlp", "hidden": [64, 64]}) == [
        ("ppo.lr", "0.5"),
        ("ppo.clip", "null"),
        ("net", "mlp"),
        ("hidden", "[64, 64]"),
    ]


def test_a_sparkline_needs_two_points():
    assert sparkline(np.array([1.0, np.nan])) == ""
    assert sparkline(np.array([0.0, 7.0])) == "0 ▁█ 7"
    assert sparkline(np.array([2.0, 2.0])) == "2 ▁▁ 2"


def test_findings_have_a_place_on_every_axis(tmp_path: Path, open_recorder: Open, clock: Any):
    recorder = open_recorder()
    for n in range(1, 11):
        clock.now += 1
        recorder.update(env_steps=n * 10, updates=n, m={})
        if n in (4, 8):
            status = "open" if n == 4 else "resolved"
            recorder.finding(
                rule="R03", severity="warn", title="it leaps", since_update=3, since_env_steps=30, status=status
            )
    recorder.finding(
        rule="R01",
        severity="fatal",
        title="NaN",
        since_update=9,
        evidence={"loss": math.nan},
        patch={"lr": 1e-4, "a": "b"},
    )
    fatal, leap = data(tmp_path)["findings"]
    assert (fatal["rule"], fatal["status"], fatal["evidence"]) == ("R01", "open", "loss –")
    assert fatal["patch"] == "--set lr=0.0001 --set a=b"
    assert fatal["since"] == {"updates": 9, "env_steps": 90, "elapsed": 8.0}
    assert fatal["until"] == {"updates": 10, "env_steps": 100, "elapsed": 9.0}
    assert (leap["since"]["updates"], leap["until"]["updates"], leap["status"]) == (3, 8, "resolved")


def test_a_long_run_has_a_finer_level_to_look_closer(tmp_path: Path, open_recorder: Open, clock: Any):
    recorder = open_recorder(sync_seconds=1e9)
    for n in range(1, 5001):
        clock.now += 1
        recorder.update(env_steps=n, updates=n, m={"grad_norm": 100.0 if n == 2502 else 1.0})
    fine = data(tmp_path)["fine"]
    assert len(fine["x"]["updates"]) == 4000
    assert max(panel(fine, "grad_norm")["max"]) == 100.0
