"""The exception for a wrong command line."""

from __future__ import annotations

import pytest

from surefoot.cli.usage import Usage, as_usage
from surefoot.errors import ConfigError, EnvError


def test_a_config_error_of_the_library_becomes_a_usage_error_with_the_same_text() -> None:
    with pytest.raises(Usage, match="clip is 3") as caught, as_usage():
        raise ConfigError("clip is 3")
    assert isinstance(caught.value.__cause__, ConfigError)


def test_other_errors_pass_unchanged() -> None:
    with pytest.raises(EnvError), as_usage():
        raise EnvError("no such robot")
