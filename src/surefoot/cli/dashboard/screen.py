"""Training on the terminal: a live dashboard, plain lines, or nothing, all with the methods of `Screen`."""

from __future__ import annotations

import atexit
import io
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, Protocol, TextIO

from rich.console import Console, ConsoleOptions
from rich.live import Live
from rich.segment import Segment
from rich.style import Style

from surefoot.cli.dashboard.end_summary import facts
from surefoot.cli.dashboard.frame import curve_panel, frame
from surefoot.cli.dashboard.history import RunHeader, RunHistory
from surefoot.cli.dashboard.plain_lines import LinesScreen, QuietScreen
from surefoot.cli.dashboard.text_boxes import Line, box
from surefoot.errors import ConfigError
from surefoot.train.progress_event import Moment

__all__ = ["LiveScreen", "Mode", "RunHeader", "Screen", "make_screen"]

Mode = Literal["auto", "live", "lines", "quiet"]

FASTEST = 1 / 8
"""Seconds between two pictures, at least."""
DEAREST = 0.03
"""Share of the time that drawing may take: a slow terminal gets fewer pictures, not a slower run."""
HEARTBEAT = 1.0
"""Seconds after which the clock is redrawn even if no update came."""


class Screen(Protocol):
    """Something that watches a run. `close` may be called twice; the second time does nothing."""

    def open(self, header: RunHeader) -> None: ...

    def show(self, moment: Moment) -> None: ...

    def close(self, ending: str) -> None: ...


def make_screen(mode: Mode = "auto", stream: TextIO | None = None) -> Screen:
    """A screen on `stream` (standard output if None). "auto" is live on a real terminal and plain lines elsewhere."""
    out: TextIO = sys.stdout if stream is None else stream
    if mode == "auto":
        mode = "live" if _can_draw(out) else "lines"
    match mode:
        case "live":
            return LiveScreen(Console(file=out, force_terminal=True, highlight=False))
        case "lines":
            return LinesScreen(out)
        case "quiet":
            return QuietScreen()
        case _:
            raise ConfigError(f"unknown screen {mode!r}; it can be auto, live, lines or quiet")


def _can_draw(stream: TextIO) -> bool:
    """A terminal that moves its cursor and knows braille, with a person in front of it."""
    if not stream.isatty() or os.environ.get("TERM", "") in ("", "dumb", "unknown") or os.environ.get("CI"):
        return False
    try:
        "⣿◆╭".encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


class RichLines:
    """Lines as something rich can print."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._lines = lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        styles: dict[str, Style] = {}
        for line in self._lines:
            for text, name in line:
                style = styles.get(name)
                if style is None:
                    style = styles[name] = Style.parse(name)
                yield Segment(text, style)
            yield Segment.line()


class LiveScreen:
    """The dashboard, on the terminal's alternate screen: what was there before comes back when it closes.

    `show` is cheap; it draws only when a picture is due. A second thread keeps the clock going during long updates.
    What other code prints meanwhile is shown among the notes and printed again, whole, at the end.
    """

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._history: RunHistory | None = None
        self._live: Live | None = None
        self._printed: dict[str, _Kept] = {}
        self._next_draw = 0.0
        self._opened_at = self._shown_at = 0.0

    def open(self, header: RunHeader) -> None:
        self._history = RunHistory(header)
        self._opened_at = self._shown_at = self._clock()
        self._next_draw = 0.0
        self._stop.clear()
        atexit.register(self._restore)
        self._live = Live(
            console=self._console,
            screen=True,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()
        self._keep_prints()
        self._draw()
        threading.Thread(target=self._tick, name="surefoot-clock", daemon=True).start()

    def show(self, moment: Moment) -> None:
        now = self._clock()
        with self._lock:
            if self._history is None:
                return
            self._history.add(moment)
            self._shown_at = now
            if now >= self._next_draw:
                self._draw()

    def close(self, ending: str) -> None:
        history = self._history
        if history is None:
            return
        printed = self._restore()
        try:
            for text in printed:
                self._console.print(text, markup=False, highlight=False, end="")
            self._console.print(RichLines(closing(history, ending, self._console.width)), end="")
        except OSError:
            return

    def _draw(self) -> None:
        """Draws, and decides when the next picture is due."""
        history, live = self._history, self._live
        if history is None or live is None:
            return
        start = self._clock()
        elapsed = start - self._shown_at + (0.0 if history.last is None else history.last.seconds)
        width, height = self._console.size
        try:
            live.update(RichLines(frame(history, width, height, elapsed)), refresh=True)
        except (OSError, ValueError):
            # The terminal is gone. The run is worth more than its picture.
            self._next_draw = float("inf")
            return
        end = self._clock()
        self._next_draw = end + max(FASTEST, (end - start) / DEAREST)

    def _tick(self) -> None:
        while not self._stop.wait(HEARTBEAT):
            with self._lock:
                if not self._stop.is_set() and self._clock() >= self._next_draw + HEARTBEAT / 2:
                    self._draw()

    def _keep_prints(self) -> None:
        """Takes over those of stdout and stderr that lead to a terminal; a redirected one is left alone."""
        for name in ("stdout", "stderr"):
            stream: TextIO = getattr(sys, name)
            if stream.isatty():
                self._printed[name] = kept = _Kept(stream, self._overheard)
                setattr(sys, name, kept)

    def _overheard(self, line: str) -> None:
        with self._lock:
            if self._history is not None and line.strip():
                self._history.say(self._clock() - self._opened_at, line)

    def _restore(self) -> list[str]:
        """Gives the terminal back, and what was printed while it was away. Safe at any time, any number of times."""
        with self._lock:
            self._stop.set()
            atexit.unregister(self._restore)
            live, self._live, self._history = self._live, None, None
            printed, self._printed = self._printed, {}
            for name, kept in printed.items():
                if getattr(sys, name) is kept:
                    setattr(sys, name, kept.original)
            if live is not None:
                try:
                    live.stop()
                except (OSError, ValueError):
                    return []
            return [text for kept in printed.values() for text in kept.texts]


class _Kept(io.TextIOBase):
    """A stand-in for stdout or stderr that keeps what is written, the last 2000 pieces of it."""

    def __init__(self, original: TextIO, hear: Callable[[str], None]) -> None:
        self.original = original
        self.texts: deque[str] = deque(maxlen=2000)
        self._hear = hear
        self._open_line = ""

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]  # a property in CPython too
        return self.original.encoding

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        self.texts.append(text)
        *lines, self._open_line = (self._open_line + text).split("\n")
        for line in lines:
            self._hear(line)
        return len(text)

    def fileno(self) -> int:
        return self.original.fileno()


def closing(history: RunHistory, ending: str, width: int) -> list[Line]:
    """The curve once more and the facts, for the scrollback."""
    width = max(40, min(width, 100))
    lines: list[Line] = []
    for name, text in facts(history, ending):
        style = "bold" if name in ("return", "best eval") else "cyan" if name in ("next", "") else ""
        lines.append([(f"{name:<10}  ", "dim"), (text, style)])
    curve = [] if history.last is None else curve_panel(history, width, 12)
    return [*curve, *box(history.header.env, lines, width)]
