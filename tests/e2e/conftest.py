"""Every update of every run in these tests begins at a ratio of 1."""

from __future__ import annotations

import pytest

from surefoot.learn.learner import Learner


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
