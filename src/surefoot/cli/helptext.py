"""What `--help` says before the options: paragraphs as wide as the terminal, examples line by line as they were written."""

from __future__ import annotations

import contextlib
import inspect
import io
import re
import shutil
import sys
import textwrap
from collections.abc import Generator, Iterator
from itertools import groupby
from typing import TextIO

WIDEST = 100
ABOUT = "surefoot.about"
"""Stands in the help that tyro makes where the description belongs: tyro would join its lines."""


class _Page(io.TextIOWrapper):
    """Takes what is meant for a terminal, and looks like it: frames and colours go by that."""

    def __init__(self, terminal: TextIO) -> None:
        self._bytes, self._terminal = io.BytesIO(), terminal
        super().__init__(
            self._bytes, encoding=terminal.encoding, errors=terminal.errors, newline="", write_through=True
        )

    def isatty(self) -> bool:
        return self._terminal.isatty()

    def text(self) -> str:
        return self._bytes.getvalue().decode(self.encoding)


def parts(owner: type) -> Iterator[tuple[str, bool]]:
    """What a docstring consists of: (text, whether it is an example). Examples are lines that are set in, and paragraphs
    that begin with the command's name."""
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(owner.__doc__ or "")):
        if paragraph.startswith("surefoot "):
            yield textwrap.indent(paragraph, "    "), True
            continue
        for example, lines in groupby(paragraph.splitlines(), lambda line: line.startswith(" ")):
            yield "\n".join(lines), example


def described(owner: type) -> str:
    """The docstring of a verb's arguments for this terminal."""
    width = min(shutil.get_terminal_size().columns, WIDEST)
    return "\n\n".join(
        text if example else textwrap.fill(text, width, break_on_hyphens=False) for text, example in parts(owner)
    )


@contextlib.contextmanager
def told_by(owner: type) -> Generator[None]:
    """What is printed meanwhile has the description of `owner` where ABOUT stands."""
    terminal = sys.stdout
    page = _Page(terminal)
    try:
        with contextlib.redirect_stdout(page):
            yield
    finally:
        text = page.text().replace(ABOUT, described(owner))
        terminal.write(text.encode(page.encoding, "replace").decode(page.encoding))  # "…" is not everywhere
