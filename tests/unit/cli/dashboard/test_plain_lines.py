"""Plain lines for logs, and the summary at the end."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path

from surefoot.cli.dashboard.history import RunHistory
from surefoot.cli.dashboard.plain_lines import LinesScreen, summary
from surefoot.train.progress_event import Moment

from .examples import HEADER, a_finding, evaluation, moment


def test_the_ending_names_what_the_doctor_found():
    lines = run_lines([moment(1), moment(2, findings=(a_finding(), a_finding(rule="R05", title="clipped")))])
    assert any("doctor" in line and "and 1 more: surefoot doctor" in line for line in lines)


def run_lines(moments: list[Moment]) -> list[str]:
    stream = io.StringIO()
    screen = LinesScreen(stream)
    screen.open(HEADER)
    for each in moments:
        screen.show(each)
    screen.close("finished")
    return stream.getvalue().splitlines()


def test_a_line_shows_the_state_of_the_run():
    line = next(line for line in run_lines([moment(u) for u in range(1, 13)]) if line.startswith(" 12.0%"))
    for text in ("12,000 steps", "return    87.4 (24 ep)", "kl 0.0081  ok", "clip 0.11", "ev  0.62", "10,000 steps/s"):
        assert text in line
    assert "eta 0:09" in line


def test_lines_come_each_second_or_each_percent_whichever_is_later():
    def shares(moments: list[Moment]) -> list[str]:
        return [line.split("%")[0].strip() for line in run_lines(moments) if "%" in line]

    fast = [moment(u) for u in range(1, 43)]  # 1 % each 0.1 s: seconds decide; the last one is always there
    assert shares(fast) == ["1.0", "11.0", "21.0", "31.0", "41.0", "42.0"]
    slow = [moment(1, env_steps=250 * u, seconds=5.0 * u) for u in range(1, 14)]  # 0.25 % each 5 s: percents decide
    assert shares(slow) == ["0.2", "1.2", "2.2", "3.2"]


def test_lines_are_aligned():
    lines = [line for line in run_lines([moment(u) for u in range(1, 100, 10)]) if "steps/s  " in line]
    assert len({line.index("return") for line in lines}) == 1
    assert len({line.index("eta") for line in lines}) == 1


def test_evaluations_and_new_notes_always_get_a_line():
    noted = run_lines([moment(1), moment(2, evaluation=evaluation()), *[moment(u, notes=("odd",)) for u in (3, 4, 5)]])
    assert sum("evaluation at 5,000 steps: 480.0 ± 2.00 over 10 episodes, the best so far" in x for x in noted) == 1
    assert sum("note: odd" in x for x in noted) == 1


def test_the_ending_shows_the_results_and_the_next_commands():
    out = "\n".join(run_lines([moment(1), moment(2, evaluation=evaluation(), checkpoint=2)]))
    for text in ("480.0 ± 2.00 over 10 episodes", "475.0 reached", "runs/x/checkpoints/000002", "2,000 of 100,000"):
        assert text in out
    for text in ("surefoot eval runs/x", "surefoot play runs/x", "surefoot resume runs/x", "runs/x/report.html"):
        assert text in out


def test_a_missed_target_is_reported_as_not_reached():
    assert any("475.0 not reached" in line for line in run_lines([moment(1, evaluation=evaluation(mean=300.0))]))


def test_a_log_in_ascii_gets_question_marks_not_errors():
    raw = io.BytesIO()
    screen = LinesScreen(io.TextIOWrapper(raw, encoding="ascii"))
    screen.open(HEADER)
    screen.show(moment(1, evaluation=evaluation()))
    screen.close("finished")
    assert b"480.0 ? 2.00" in raw.getvalue()


def test_a_run_without_an_update_ends_in_words():
    assert any("no update was completed" in line for line in run_lines([]))


def test_a_run_that_never_saved_names_no_command_that_would_fail(tmp_path: Path):
    history = RunHistory(dataclasses.replace(HEADER, run_dir=str(tmp_path)))
    assert "next" not in dict(summary(history, "stopped by EnvError"))
    (tmp_path / "checkpoints").mkdir()  # resumed, and stopped before the first update
    assert "next" in dict(summary(history, "interrupted"))


def test_the_next_commands_of_a_prompt_run_are_those_that_work_on_it():
    header = dataclasses.replace(HEADER, env="surefoot/Prompts-v0")
    history = RunHistory(header)
    history.add(moment(checkpoint=1))
    commands = [text for _, text in summary(history, "finished") if text.startswith("surefoot")]
    assert commands == ["surefoot prompts eval runs/x", "surefoot prompts report runs/x"]
