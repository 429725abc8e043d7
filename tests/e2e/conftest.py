"""Every update of every run in these tests begins at a ratio of 1; Python processes are forked (`fork_server.py`)."""

from __future__ import annotations

import subprocess

import fork_server
import pytest

from surefoot.learn.learner import Learner


def pytest_runtest_setup(item: pytest.Item) -> None:
    forked = fork_server.available() and item.get_closest_marker("real_process") is None
    subprocess.Popen = fork_server.ForkedPopen if forked else fork_server.RealPopen


def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    if nextitem is None or "e2e" not in nextitem.path.parts:
        subprocess.Popen = fork_server.RealPopen


@pytest.fixture(autouse=True)
def _fresh_rollouts_begin_at_one(monkeypatch):
    update = Learner.update

    def checked(self, rollout, **kwargs):
        report = update(self, rollout, **kwargs)
        # A test's own policy may lie about what it did, and says so.
        if report.policy_lag == 0 and not getattr(self.policy, "dishonest", False):
            assert report.first_ratio_error <= 1e-5, f"the ratio began {report.first_ratio_error} away from 1"
        return report

    monkeypatch.setattr(Learner, "update", checked)
