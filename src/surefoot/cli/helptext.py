"""The description that `VERB --help` prints before the options: wrapped paragraphs, examples line by line."""

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
"""Columns of a paragraph on a wide terminal; longer lines are hard to read."""
ABOUT = "surefoot.about"
"""Placeholder for the description in the text that tyro prints: tyro itself would join the lines of examples."""
COMMON = "Common option: --runs DIR, the directory of runs (default $SUREFOOT_RUNS or ./runs)."
COMMON_JSON = "Common options: --json prints the result as JSON; --runs DIR is the directory of runs."


class _Page(io.TextIOWrapper):
    """Buffer that reports the same encoding and `isatty` as the terminal, so that tyro prints frames and colours."""

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
    """Yield the parts of a docstring as (text, whether it is an example).

    Examples are indented lines, and paragraphs that begin with the command's name.
    """
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(owner.__doc__ or "")):
        if paragraph.startswith("surefoot "):
            yield textwrap.indent(paragraph, "    "), True
            continue
        for example, lines in groupby(paragraph.splitlines(), lambda line: line.startswith(" ")):
            yield "\n".join(lines), example
    yield COMMON_JSON if hasattr(owner, "as_json") else COMMON, False


def described(owner: type) -> str:
    """Return the docstring of a verb's arguments, wrapped for this terminal."""
    width = min(shutil.get_terminal_size().columns, WIDEST)
    return "\n\n".join(
        text if example else textwrap.fill(text, width, break_on_hyphens=False) for text, example in parts(owner)
    )


@contextlib.contextmanager
def described_by(owner: type) -> Generator[None]:
    """Replace ABOUT in what is printed meanwhile by the description of `owner`."""
    terminal = sys.stdout
    page = _Page(terminal)
    try:
        with contextlib.redirect_stdout(page):
            yield
    finally:
        text = page.text().replace(ABOUT, described(owner))
        terminal.write(text.encode(page.encoding, "replace").decode(page.encoding))  # ASCII terminals have no "…"
