"""What can be sent to a worker; what workers do is in tests/e2e."""

from __future__ import annotations

import sys
from typing import Any

import gymnasium as gym
import pytest

from surefoot.envs.make import make_world
from surefoot.errors import ConfigError


def test_a_function_that_cannot_be_sent_is_refused_with_what_works(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"cannot be sent.*use an id or a function at the top of a module.*workers=0"):
        make_world(lambda: gym.make("CartPole-v1"), 2, workers=1)

    def build() -> Any:
        return gym.make("CartPole-v1")

    build.__module__, build.__qualname__ = "__main__", "build"
    monkeypatch.setattr(sys.modules["__main__"], "build", build, raising=False)
    with pytest.raises(ConfigError, match=r"in the script that runs.*another module"):
        make_world(build, 2, workers=1)
