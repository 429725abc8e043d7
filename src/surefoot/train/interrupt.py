"""Ctrl-C that waits for the current update."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, Self


class GentleStop:
    """While open, the first SIGINT (or another of `signals`) only sets `requested`; the second one interrupts immediately.

    The first one prints `announce` on stderr: with a slow environment an update takes minutes.
    A state in the middle of an update cannot be saved, so the loop reads `requested` between two updates.
    """

    def __init__(self, signals: tuple[int, ...] = (signal.SIGINT, signal.SIGTERM), *, announce: str = "") -> None:
        self.requested, self._signals, self._announce = False, signals, announce
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        # Python allows signal handlers in the main thread only; elsewhere nothing is caught.
        if threading.current_thread() is threading.main_thread():
            for number in self._signals:
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        if self._announce:
            with suppress(OSError, RuntimeError):  # a closed pipe, or a signal in the middle of a write
                print(self._announce, file=sys.stderr, flush=True)
