"""An encoder small enough for quick tests."""

from __future__ import annotations

import pytest

from surefoot.decide.encoders.encoder import HashingEncoder


@pytest.fixture(scope="session")
def encoder() -> HashingEncoder:
    return HashingEncoder(64)
