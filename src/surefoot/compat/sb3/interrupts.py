"""Ctrl-C during `learn`."""

from __future__ import annotations

import signal
import threading
from typing import Any


class Interrupts:
    """Turns the first Ctrl-C into a flag that is read between steps and updates; the second one interrupts immediately."""

    def __init__(self, model: Any) -> None:
        self.model, self.before = model, None

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            self.before: Any = signal.signal(signal.SIGINT, self._note)

    def __exit__(self, *error: object) -> None:
        if self.before is not None:
            signal.signal(signal.SIGINT, self.before)

    def _note(self, number: int, frame: Any) -> None:
        if self.model.interrupted:
            raise KeyboardInterrupt
        self.model.interrupted = True
