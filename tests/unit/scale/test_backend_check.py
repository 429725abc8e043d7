"""The check of a backend's contract."""

from __future__ import annotations

from scale_backends import a_spec, weights_of

from surefoot.scale.backend_check import check_backend
from surefoot.scale.local_backend import local_backend


def test_local_workers_keep_the_contract_when_killed_and_when_stopped():
    spec = a_spec()
    assert check_backend(lambda: local_backend(spec, 2, timeout=5.0), spec, weights_of(spec)) == []
