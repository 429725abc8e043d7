"""The exception for a wrong command line."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from surefoot.errors import ConfigError


class Usage(ConfigError):
    """An argument has the wrong form, or options contradict each other; exit code 64."""


@contextmanager
def as_usage() -> Generator[None]:
    """Turn a `ConfigError` that the library raises for the value of an option into `Usage`."""
    try:
        yield
    except ConfigError as why:
        raise Usage(str(why)) from why
