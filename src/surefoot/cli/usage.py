"""The error about the command line itself."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from surefoot.errors import ConfigError


class Usage(ConfigError):
    """An argument that is not even of the right form; exit code 64."""


@contextmanager
def as_usage() -> Generator[None]:
    """Turn a `ConfigError` that the library raises for the value of a flag into `Usage`."""
    try:
        yield
    except ConfigError as why:
        raise Usage(str(why)) from why
