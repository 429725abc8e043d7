"""The one error that is about the command line itself."""

from __future__ import annotations

from surefoot.errors import ConfigError


class Usage(ConfigError):
    """An argument that is not even of the right form; exit code 64."""
