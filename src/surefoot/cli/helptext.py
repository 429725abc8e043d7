"""What `VERB --help` prints: a description with wrapped paragraphs and examples, and options without noise."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import io
import re
import shutil
import sys
import textwrap
from collections.abc import Generator, Iterator
from itertools import groupby
from typing import Annotated, Any, Literal, TextIO, get_args, get_origin, get_type_hints

WIDEST = 100
"""Columns of a paragraph on a wide terminal; longer lines are hard to read."""
ABOUT = "surefoot.about"
"""Placeholder for the description in the text that tyro prints: tyro itself would join the lines of examples."""
COMMON = "Common options: --runs DIR is the directory of runs (default $SUREFOOT_RUNS or ./runs); --threads N those of torch (1)."
COMMON_JSON = "Common options: --json prints JSON; --runs DIR is the directory of runs; --threads N those of torch (1)."


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
    text = owner.__doc__ or ""
    # Under -OO there are no docstrings, and a dataclass has its signature for one.
    text = "" if text.startswith(f"{owner.__name__}(") else text
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text)):
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


def tidy_options(owner: type) -> None:
    """Change the annotations of a verb's arguments so that `--help` prints INT, not `{None}|INT (default: None)`.

    A default of None, False or () is not printed: the description of the option has to state it.
    """
    from tyro.conf import arg

    hints = get_type_hints(owner, include_extras=True)
    for field in dataclasses.fields(owner):
        factory = field.default_factory
        default = field.default if factory is dataclasses.MISSING else factory()
        if default is None or default is False or default in ((), []):
            quiet = arg(help_behavior_hint="", metavar=_metavar(hints[field.name]))
            hints[field.name] = Annotated[hints[field.name], quiet]
    owner.__annotations__ = hints


def _metavar(hint: Any) -> str | None:
    """Return the placeholder of an optional value, or None for that of tyro or of the annotation itself."""
    while get_origin(hint) is Annotated:
        if any(getattr(mark, "metavar", None) for mark in hint.__metadata__):
            return None
        hint = get_args(hint)[0]
    options = [option for option in get_args(hint) if option is not type(None)]
    if type(None) not in get_args(hint) or len(options) != 1:
        return None
    if get_origin(options[0]) is Literal:
        return "{" + ",".join(map(str, get_args(options[0]))) + "}"
    return options[0].__name__.upper()
