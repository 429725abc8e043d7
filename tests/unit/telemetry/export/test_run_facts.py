from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from surefoot.telemetry.export.run_facts import clock_time, gather, number
from surefoot.telemetry.reader import load_curves
from surefoot.telemetry.schema import EndReason, Episodes
from surefoot.telemetry.writer import Recorder

Open = Callable[..., Recorder]


def begin(open_recorder: Open, clock: Any, updates: int) -> Recorder:
    """Each update takes 2 s and 100 steps and sees 30 episodes with a return of its number."""
    recorder = open_recorder()
    recorder.header(env="CartPole-v1", seed=1, config={}, exact=False, exact_reason="no state", path="torch")
    for n in range(1, updates + 1):
        clock.now += 2
        seconds = {"collect": 1.0, "env": 0.5, "policy": 0.25, "learn": 0.75}
        episodes = Episodes.of([float(n)] * 30, [3] * 30)
        recorder.update(env_steps=n * 100, updates=n, m={}, seconds=seconds, episodes=episodes)
    return recorder


def tiles(folder: Path) -> dict[str, tuple[str, str]]:
    return {label: (value, note) for label, value, note in gather(load_curves(folder), running=False).tiles}


def test_the_head_of_a_report(tmp_path: Path, open_recorder: Open, clock: Any):
    begin(open_recorder, clock, 10)
    shown = tiles(tmp_path)
    assert shown["env steps"] == ("1,000", "")
    assert shown["updates"] == ("10", "")
    assert shown["wall time"] == ("20.0 s", "")
    assert shown["steps/s"] == ("50", "")
    assert shown["resume"] == ("not exact", "no state")
    assert shown["path"] == ("torch", "")


def test_without_an_evaluation_the_score_is_that_of_the_last_hundred_episodes(
    tmp_path: Path, open_recorder: Open, clock: Any
):
    begin(open_recorder, clock, 10)
    assert tiles(tmp_path)["score"] == ("8.5", "last 120 training episodes")  # 10, 9, 8 and 7, thirty each


def test_the_last_evaluation_is_the_score_and_the_best_is_named(tmp_path: Path, open_recorder: Open, clock: Any):
    recorder = begin(open_recorder, clock, 1)
    recorder.eval(returns=[50.0, 70.0], lengths=[1, 1])
    recorder.eval(returns=[10.0, 20.0], lengths=[1, 1])
    assert tiles(tmp_path)["score"] == ("15 ± 5", "2 evaluation episodes at 100 steps; best 60")


def test_before_the_first_episode_there_is_no_score(tmp_path: Path, open_recorder: Open):
    open_recorder().update(env_steps=1, updates=1, m={})
    assert tiles(tmp_path)["score"] == ("none yet", "no episode has ended")


def test_the_time_split_adds_up(tmp_path: Path, open_recorder: Open, clock: Any):
    begin(open_recorder, clock, 2)
    split = gather(load_curves(tmp_path), running=False).split
    assert split == [("env", 1.0), ("policy", 0.5), ("collect, rest", 0.5), ("learn", 1.5), ("other", 0.5)]


@pytest.mark.parametrize("reason", ["finished", "diverged"])
def test_the_end_is_the_state(tmp_path: Path, open_recorder: Open, clock: Any, reason: EndReason):
    begin(open_recorder, clock, 1).close(reason, "as told")
    facts = gather(load_curves(tmp_path), running=False)
    assert (facts.state, facts.state_text) == (reason, f"{reason}: as told")


def test_without_an_end_it_runs_or_was_killed(tmp_path: Path, open_recorder: Open, clock: Any):
    begin(open_recorder, clock, 1)
    curves = load_curves(tmp_path)
    assert [gather(curves, running=running).state for running in (True, False)] == ["running", "killed"]


def test_an_empty_record_has_facts_too(tmp_path: Path):
    (tmp_path / "telemetry.ndjson").touch()
    facts = gather(load_curves(tmp_path), running=False)
    assert (facts.env, facts.state, facts.split) == ("unknown environment", "killed", [])


@pytest.mark.parametrize(("seconds", "text"), [(9.87, "9.9 s"), (61, "1 min 1 s"), (7384, "2 h 3 min")])
def test_times_are_said_as_people_say_them(seconds: float, text: str):
    assert clock_time(seconds) == text


@pytest.mark.parametrize(
    ("x", "text"),
    [(0, "0"), (0.01234, "0.0123"), (487.25, "487.2"), (12345.6, "12,346"), (2.5e-7, "2.50e-07"), (-3e9, "-3.00e+09")],
)
def test_numbers_are_short(x: float, text: str):
    assert number(x) == text
