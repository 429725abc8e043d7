import io
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

from surefoot.cli.dashboard.frame import frame
from surefoot.cli.dashboard.history import RunHeader, RunHistory, Trace
from surefoot.cli.dashboard.plain_lines import LinesScreen, QuietScreen
from surefoot.cli.dashboard.screen import LiveScreen, make_screen
from surefoot.cli.dashboard.text_boxes import length
from surefoot.errors import ConfigError
from surefoot.learn.report import UpdateReport
from surefoot.telemetry.doctor.findings import Finding
from surefoot.train.progress_event import EvalPoint, Moment

ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"
HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
TOTAL = 100_000

HEADER = RunHeader(
    env="CartPole-v1",
    run_dir="runs/x",
    settings={"lr": "3e-4", "clip": "0.2"},
    seed=3,
    path_note="torch, 1 thread",
    world_note="own CartPole-v1, 8 envs",
    preset="classic",
    target=475.0,
)


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    encoding = "utf-8"  # type: ignore[assignment]

    def isatty(self) -> bool:
        return True


def moment(update: int = 1, **changes: Any) -> Moment:
    """1000 steps and a tenth of a second an update; two episodes each."""
    report = UpdateReport(
        update=update,
        policy_version=update,
        samples=1000,
        path="torch",
        path_reason="",
        approx_kl=0.0081,
        clip_fraction=0.11,
        entropy=0.6,
        explained_variance=0.62,
        value_loss=1.0,
        target_std=5.0,
        grad_norm=0.4,
        lr=3e-4,
        seconds={"env": 0.02, "policy": 0.03, "collect": 0.06, "prepare": 0.01, "learn": 0.03},
    )
    parts: dict[str, Any] = {
        "report": report,
        "env_steps": 1000 * update,
        "total_steps": TOTAL,
        "seconds": 0.1 * update,
        "episodes": 2 * update,
        "recent_return": 87.4,
        "recent_length": 87.4,
        "recent_success": None,
        "new_returns": (50.0, 120.0),
        "evaluation": None,
        "checkpoint": None,
        "notes": (),
    }
    return Moment(**(parts | changes))


def evaluation(mean: float = 480.0, env_steps: int = 5000) -> EvalPoint:
    return EvalPoint(env_steps=env_steps, mean=mean, std=2.0, minimum=470.0, maximum=490.0, episodes=10, is_best=True)


def live(
    width: int = 100, height: int = 30, clock: Callable[[], float] = time.monotonic
) -> tuple[LiveScreen, Terminal]:
    stream = Terminal()
    return LiveScreen(Console(file=stream, force_terminal=True, width=width, height=height), clock), stream


def plain(history: RunHistory, width: int, height: int) -> list[str]:
    return ["".join(text for text, _ in line) for line in frame(history, width, height, 1.0)]


def after(updates: int, **changes: Any) -> RunHistory:
    history = RunHistory(HEADER)
    for update in range(1, updates + 1):
        history.add(moment(update, **changes))
    return history


@pytest.mark.parametrize(
    ("width", "height"), [(80, 24), (100, 30), (140, 45), (200, 60), (60, 20), (40, 10), (20, 5), (300, 12), (10, 3)]
)
@pytest.mark.parametrize("updates", [0, 1, 40])
def test_a_frame_fills_any_terminal_exactly(width: int, height: int, updates: int):
    lines = frame(after(updates, evaluation=evaluation(), notes=("wörter 世界 " * 30,)), width, height, 1.0)
    assert len(lines) == height
    assert {length(line) for line in lines} == {width}


def test_a_small_terminal_still_shows_everything_that_matters():
    page = "\n".join(plain(after(40, evaluation=evaluation()), 80, 24))
    for text in ("CartPole-v1", "40.0 %", "40,000", "10,000/s", "eta 0:06", "87.4", "target 475", "◆", "approx kl"):
        assert text in page
    for text in ("0.0081", "<0.02", "ok", "expl. var", "env 20%", "policy 30%", "learn 40%", "rest 10%", "Ctrl-C"):
        assert text in page


def test_a_number_out_of_range_is_named_in_words():
    history = RunHistory(HEADER)
    for update in range(1, 41):
        wild = moment(update)
        history.add(moment(update, report=UpdateReport(**(wild.report.as_dict() | {"approx_kl": 0.3, "epochs": ()}))))
    page = "\n".join(plain(history, 100, 30))
    assert "approx kl high" in page


def test_a_note_cannot_move_the_cursor():
    history = after(1, notes=("\x1b[2Jwiped\nout",))
    assert "\x1b" not in "".join(plain(history, 100, 30))
    assert "wiped out" in "\n".join(plain(history, 100, 30))


def a_finding(**changes: Any) -> Finding:
    known = {"rule": "R03", "severity": "error", "title": "Updates move the policy too far", "since_update": 12}
    return Finding(**{**known, "patch": {"lr": 1e-4}, **changes})


@pytest.mark.parametrize(("width", "height"), [(140, 45), (100, 40), (80, 30)])
def test_a_finding_stays_on_the_screen_until_it_is_over(width: int, height: int):
    history = after(30)
    history.add(moment(31, findings=(a_finding(),)))
    for update in range(32, 60):
        history.add(moment(update, notes=(f"note {update}",)))
    assert any("R03 Updates move the policy too far" in line for line in plain(history, width, height))
    history.add(moment(60, findings=(a_finding(status="resolved"),)))
    assert not any("Updates move" in line for line in plain(history, width, height))


def test_advice_is_not_put_on_the_screen():
    history = after(3)
    history.add(moment(4, findings=(a_finding(severity="info"),)))
    assert not any("Updates move" in line for line in plain(history, 120, 40))


def test_the_ending_names_what_the_doctor_found():
    lines = run_lines([moment(1), moment(2, findings=(a_finding(), a_finding(rule="R05", title="clipped")))])
    assert any("doctor" in line and "and 1 more: surefoot doctor" in line for line in lines)


def test_a_repeated_note_is_counted_not_repeated():
    page = "\n".join(plain(after(7, notes=("a guard fired",)), 100, 30))
    assert page.count("a guard fired") == 1
    assert "×7" in page


def test_the_time_split_adds_up_to_the_wall_time():
    split = dict(after(10).time_split())
    assert split == pytest.approx({"env": 0.2, "policy": 0.3, "learn": 0.4, "rest": 0.1})


def test_the_rate_follows_the_last_ten_seconds_and_the_eta_the_rate():
    history = RunHistory(HEADER)
    for update in range(1, 51):  # 10,000 steps a second for 2.5 s, then 1,000 a second
        seconds = 0.1 * update if update <= 25 else 2.5 + (update - 25)
        history.add(moment(update, seconds=seconds))
    for update in range(51, 91):
        history.add(moment(update, seconds=27.5 + update - 50))
    assert history.rate == pytest.approx(1000)
    assert history.eta == pytest.approx(10)


def test_a_resumed_run_measures_only_its_own_steps():
    history = RunHistory(HEADER)
    history.add(moment(51, seconds=1.0))
    assert history.overall_rate == pytest.approx(1000)
    assert history.progress == pytest.approx(0.51)


def test_a_trace_keeps_means_and_extremes_in_bounded_space():
    trace = Trace(5, capacity=8)
    for i in range(100):
        trace.add([i, i, -i, i, 1.0])
    rows = trace.rows()
    assert len(rows) <= 9
    assert rows[:, 2].min() == -99
    assert rows[:, 3].max() == 99
    assert (rows[:, 4] == 1).all()
    # The first row stands for updates 0 to 15, whose mean is 7.5.
    assert rows[0].tolist() == [7.5, 7.5, -15, 15, 1]


def test_the_screen_is_left_and_the_cursor_shown_at_the_end():
    screen, stream = live()
    screen.open(HEADER)
    screen.show(moment())
    screen.close("finished")
    out = stream.getvalue()
    assert out.count(ENTER) == out.count(LEAVE) == 1
    summary = out[out.index(LEAVE) :]
    assert out.rindex(SHOW_CURSOR) > out.rindex(HIDE_CURSOR)
    assert "finished" in summary
    assert "surefoot resume runs/x" in summary


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("x is 3")])
def test_the_terminal_is_restored_before_an_exception_leaves(error: BaseException):
    screen, stream = live()
    screen.open(HEADER)
    try:
        screen.show(moment())
        raise error
    except BaseException:
        screen.close(f"stopped by {type(error).__name__}")  # as `drive` does
    out = stream.getvalue()
    assert out.rindex(SHOW_CURSOR) > out.rindex(HIDE_CURSOR)
    assert f"stopped by {type(error).__name__}" in out.split(LEAVE)[1]


def test_closing_twice_says_it_once():
    screen, stream = live()
    screen.open(HEADER)
    screen.show(moment())
    screen.close("stopped at the target")
    screen.close("finished")
    assert stream.getvalue().count("ending") == 1
    assert stream.getvalue().count(LEAVE) == 1


def test_what_others_print_is_shown_later_not_lost(monkeypatch: pytest.MonkeyPatch):
    out, err = Terminal(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    screen, stream = live()
    screen.open(HEADER)
    print("from the world")
    print("redirected", file=sys.stderr)
    screen.close("finished")
    assert sys.stdout is out
    assert "from the world\n" in stream.getvalue().split(LEAVE)[1]
    assert err.getvalue() == "redirected\n"


def test_pictures_come_at_most_eight_times_a_second():
    now = [100.0]
    screen, stream = live(clock=lambda: now[0])
    screen.open(HEADER)
    pictures = 0
    for update in range(1, 401):  # two seconds at 200 updates a second
        now[0] = 100 + update / 200
        before = stream.tell()
        screen.show(moment(min(update, 99)))
        pictures += stream.tell() > before
    screen.close("finished")
    assert 10 <= pictures <= 16


def test_a_terminal_that_vanishes_does_not_stop_the_run():
    class Gone(Terminal):
        lost = False

        def write(self, text: str, /) -> int:
            if self.lost:
                raise OSError("input/output error")
            return super().write(text)

    now = [0.0]
    stream = Gone()
    screen = LiveScreen(Console(file=stream, force_terminal=True, width=80, height=24), lambda: now[0])
    screen.open(HEADER)
    stream.lost = True
    for update in range(1, 4):
        now[0] += 10
        screen.show(moment(update))
    screen.close("finished")


def run_lines(moments: list[Moment]) -> list[str]:
    stream = io.StringIO()
    screen = LinesScreen(stream)
    screen.open(HEADER)
    for each in moments:
        screen.show(each)
    screen.close("finished")
    return stream.getvalue().splitlines()


def test_a_line_says_where_the_run_is():
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


def test_the_ending_says_what_came_of_it_and_what_to_type_next():
    out = "\n".join(run_lines([moment(1), moment(2, evaluation=evaluation(), checkpoint=2)]))
    for text in ("480.0 ± 2.00 over 10 episodes", "475.0 reached", "runs/x/checkpoints/000002", "2,000 of 100,000"):
        assert text in out
    for text in ("surefoot eval runs/x", "surefoot play runs/x", "surefoot resume runs/x", "runs/x/report.html"):
        assert text in out


def test_a_target_that_was_missed_is_said_to_be_missed():
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


@pytest.fixture
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    return monkeypatch


def test_auto_is_live_on_a_terminal_and_lines_elsewhere(plain_environment: pytest.MonkeyPatch):
    assert isinstance(make_screen("auto", Terminal()), LiveScreen)
    assert isinstance(make_screen("auto", io.StringIO()), LinesScreen)
    assert isinstance(make_screen("quiet", Terminal()), QuietScreen)
    assert isinstance(make_screen("lines", Terminal()), LinesScreen)
    assert isinstance(make_screen("live", io.StringIO()), LiveScreen)


@pytest.mark.parametrize(("name", "value"), [("TERM", "dumb"), ("CI", "true")])
def test_auto_is_lines_where_nobody_watches(plain_environment: pytest.MonkeyPatch, name: str, value: str):
    plain_environment.setenv(name, value)
    assert isinstance(make_screen("auto", Terminal()), LinesScreen)


def test_auto_is_lines_on_a_terminal_without_braille(plain_environment: pytest.MonkeyPatch):
    class Latin(Terminal):
        encoding = "latin-1"  # type: ignore[assignment]

    assert isinstance(make_screen("auto", Latin()), LinesScreen)


def test_no_color_is_respected(plain_environment: pytest.MonkeyPatch):
    def page() -> str:
        stream = Terminal()
        screen = make_screen("live", stream)
        screen.open(HEADER)
        screen.show(moment())
        screen.close("finished")
        return stream.getvalue()

    assert "36m" in page()
    plain_environment.setenv("NO_COLOR", "1")
    assert "36m" not in page()


def test_an_unknown_mode_is_refused():
    with pytest.raises(ConfigError, match="'loud'"):
        make_screen("loud", io.StringIO())  # type: ignore[arg-type]


def test_showing_without_drawing_is_cheap():
    screen, _ = live(clock=lambda: 0.0)
    screen.open(HEADER)
    screen.show(moment())
    each = [moment(u) for u in range(1, 100)]
    best = float("inf")
    for one in each:
        start = time.perf_counter()
        screen.show(one)
        best = min(best, time.perf_counter() - start)
    screen.close("finished")
    assert best < 50e-6
