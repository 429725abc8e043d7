"""The reader of records that are not of this package's version 2: one JSON object per line without a field `v`."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol, cast

from surefoot.telemetry.schema import UpdateRecord

FORMAT = "surefoot.compat.townlet.records"
"""A module that is a `RecordFormat`. Imported by name at first use, so that this room does not depend on `compat`."""


class RecordFormat(Protocol):
    """How to recognise, check and convert the lines of another record format."""

    VERSIONS: tuple[str, ...]

    def version_of(self, line: dict[str, Any], /) -> str | None:
        """Return the version of a line; None if it is not of this format."""
        ...

    def errors(self, line: dict[str, Any], version: str, /) -> list[str]:
        """Return the reasons why a line is invalid."""
        ...

    def oddities(self, line: dict[str, Any], version: str, /) -> list[str]:
        """Return warnings about a valid line."""
        ...

    def migrate(self, line: dict[str, Any], version: str, /, *, number: int, before: float = 0.0) -> UpdateRecord:
        """Return a valid line as an `UpdateRecord`; `number` is its line, `before` the time of the line above."""
        ...


def foreign_format() -> RecordFormat:
    """Return the format that lines without a field `v` are read with."""
    return cast(RecordFormat, import_module(FORMAT))
