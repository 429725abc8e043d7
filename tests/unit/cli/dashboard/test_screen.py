"""The live dashboard: the terminal is restored, other output is kept, the mode is chosen."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable

import pytest
from rich.console import Console

from surefoot.cli.dashboard.plain_lines import LinesScreen, QuietScreen
from surefoot.cli.dashboard.screen import LiveScreen, make_screen
from surefoot.errors import ConfigError

from .examples import HEADER, moment

ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"
HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    encoding = "utf-8"  # type: ignore[assignment]

    def isatty(self) -> bool:
        return True


def live(
    width: int = 100, height: int = 30, clock: Callable[[], float] = time.monotonic
) -> tuple[LiveScreen, Terminal]:
    stream = Terminal()
    return LiveScreen(Console(file=stream, force_terminal=True, width=width, height=height), clock), stream


def test_the_screen_is_left_and_the_cursor_shown_at_the_end():
    screen, stream = live()
    screen.open(HEADER)
    screen.show(moment(checkpoint=1))
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
