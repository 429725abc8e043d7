"""Shared by all tests: one thread, so that digits do not depend on the machine."""

from __future__ import annotations

import gc
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MUJOCO_GL", "disable")

import pytest
from hypothesis import HealthCheck, settings

# The same cases each time, so that whoever changed nothing sees nothing fail; SUREFOOT_RANDOM=1 looks for new ones.
settings.register_profile(
    "surefoot",
    deadline=None,
    derandomize=not os.environ.get("SUREFOOT_RANDOM"),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("surefoot")


def pytest_collection_finish() -> None:
    """Leave what was imported out of every later garbage collection: torch and its company are most of the heap."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    import sys

    torch = sys.modules.get("torch")
    if torch is not None and torch.get_num_threads() != 1:
        torch.set_num_threads(1)
