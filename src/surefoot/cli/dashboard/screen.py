"""Progress displays of training: a live dashboard, plain lines, or nothing; all implement `Screen`."""

from __future__ import annotations

import atexit
import io
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, Protocol, TextIO

from rich.console import Console, ConsoleOptions
from rich.live import Live
from rich.segment import Segment
from rich.style import Style

from surefoot.cli.dashboard.frame import curve_panel, frame
from surefoot.cli.dashboard.history import RunHeader, RunHistory
from surefoot.cli.dashboard.plain_lines import LinesScreen, QuietScreen, summary
from surefoot.cli.dashboard.text_boxes import Line, box
from surefoot.errors import ConfigError
from surefoot.train.progress_event import Moment

__all__ = ["LiveScreen", "Mode", "RunHeader", "Screen", "make_screen"]

Mode = Literal["auto", "live", "lines", "quiet"]

MIN_INTERVAL = 1 / 8
"""Shortest time between two frames in seconds; more than 8 frames per second cannot be read."""
MAX_DRAW_SHARE = 0.03
"""Share of the time that drawing may take: a slow terminal gets fewer frames instead of a slower run."""
HEARTBEAT = 1.0
"""Seconds after which the clock is redrawn even without an update."""


class Screen(Protocol):
    """Protocol of progress displays. A second call of `close` does nothing."""

    def open(self, header: RunHeader) -> None: ...

    def show(self, moment: Moment) -> None: ...

    def close(self, ending: str) -> None: ...


def make_screen(mode: Mode = "auto", stream: TextIO | None = None) -> Screen:
    """Return a display on `stream` (default: standard output); "auto" is live on a terminal, otherwise plain lines."""
    out: TextIO = sys.stdout if stream is None else stream
    if mode == "auto":
        mode = "live" if can_draw(out) else "lines"
    match mode:
        case "live":
            return LiveScreen(Console(file=out, force_terminal=True, highlight=False))
        case "lines":
            return LinesScreen(out)
        case "quiet":
            return QuietScreen()
        case _:
            raise ConfigError(f"the display is {mode!r}; it must be auto, live, lines or quiet")


def can_draw(stream: TextIO) -> bool:
    """Return whether `stream` is an interactive terminal that supports cursor movement and braille characters."""
    if not stream.isatty() or os.environ.get("TERM", "") in ("", "dumb", "unknown") or os.environ.get("CI"):
        return False
    try:
        "⣿◆╭".encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


class RichLines:
    """Lines as a rich renderable."""

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
    """The dashboard on the terminal's alternate screen; the previous content returns when it closes.

    `show` is cheap: it draws only when a frame is due. A second thread updates the clock during long updates. Output of
    other code is shown among the notes and printed again completely at the end. `make` collects what is shown, `draw` makes
    a frame of it and `finish` the summary that remains; a language run has others.
    """

    def __init__(
        self,
        console: Console,
        clock: Callable[[], float] = time.monotonic,
        *,
        make: Callable[[Any], Any] = RunHistory,
        draw: Callable[[Any, int, int, float], list[Line]] = frame,
        finish: Callable[[Any, str, int], list[Line]] | None = None,
    ) -> None:
        self._console = console
        self._clock = clock
        self._make, self._frame, self._finish = make, draw, finish or closing
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._history: Any = None
        self._live: Live | None = None
        self._printed: dict[str, _Capture] = {}
        self._next_draw = 0.0
        self._opened_at = self._shown_at = 0.0

    def open(self, header: Any) -> None:
        self._history = self._make(header)
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
        self._capture_output()
        self._draw()
        threading.Thread(target=self._tick, name="surefoot-clock", daemon=True).start()

    def show(self, moment: Any) -> None:
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
            self._console.print(RichLines(self._finish(history, ending, self._console.width)), end="")
        except OSError:
            return

    def _draw(self) -> None:
        """Draw a frame, and set the time of the next one."""
        history, live = self._history, self._live
        if history is None or live is None:
            return
        start = self._clock()
        elapsed = start - self._shown_at + (0.0 if history.last is None else history.last.seconds)
        width, height = self._console.size
        try:
            live.update(RichLines(self._frame(history, width, height, elapsed)), refresh=True)
        except (OSError, ValueError):
            # The terminal was closed. Training continues without a display.
            self._next_draw = float("inf")
            return
        end = self._clock()
        self._next_draw = end + max(MIN_INTERVAL, (end - start) / MAX_DRAW_SHARE)

    def _tick(self) -> None:
        while not self._stop.wait(HEARTBEAT):
            with self._lock:
                if not self._stop.is_set() and self._clock() >= self._next_draw + HEARTBEAT / 2:
                    self._draw()

    def _capture_output(self) -> None:
        """Replace stdout and stderr if they are terminals; redirected streams are not changed."""
        for name in ("stdout", "stderr"):
            stream: TextIO = getattr(sys, name)
            if stream.isatty():
                self._printed[name] = capture = _Capture(stream, self._note_output)
                setattr(sys, name, capture)

    def _note_output(self, line: str) -> None:
        with self._lock:
            if self._history is not None and line.strip():
                self._history.add_event(self._clock() - self._opened_at, line)

    def _restore(self) -> list[str]:
        """Restore the terminal and return the captured output. Can be called at any time, repeatedly."""
        with self._lock:
            self._stop.set()
            atexit.unregister(self._restore)
            live, self._live, self._history = self._live, None, None
            printed, self._printed = self._printed, {}
            for name, capture in printed.items():
                if getattr(sys, name) is capture:
                    setattr(sys, name, capture.original)
            if live is not None:
                try:
                    live.stop()
                except (OSError, ValueError):
                    return []
            return [text for capture in printed.values() for text in capture.texts]


class _Capture(io.TextIOBase):
    """Replacement of stdout or stderr that stores the last 2000 writes, which bounds the memory of a long run."""

    def __init__(self, original: TextIO, on_line: Callable[[str], None]) -> None:
        self.original = original
        self.texts: deque[str] = deque(maxlen=2000)
        self._on_line = on_line
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
            self._on_line(line)
        return len(text)

    def fileno(self) -> int:
        return self.original.fileno()


def closing(history: RunHistory, ending: str, width: int) -> list[Line]:
    """Return the final curve and the summary, which remain in the scrollback."""
    width = max(40, min(width, 100))
    lines: list[Line] = []
    for name, text in summary(history, ending):
        style = "bold" if name in ("return", "best eval") else "cyan" if name in ("next", "") else ""
        lines.append([(f"{name:<10}  ", "dim"), (text, style)])
    curve = [] if history.last is None else curve_panel(history, width, 12)
    return [*curve, *box(history.header.env, lines, width)]
