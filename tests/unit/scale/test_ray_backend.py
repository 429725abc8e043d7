"""Rollouts and connections of a Ray cluster."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest
from scale_backends import a_spec, weights_of

from surefoot.errors import ConfigError
from surefoot.scale.backend_check import check_backend


@pytest.fixture
def no_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[None]:
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return


class NoRay:
    """Stands where Ray would, and must not be started."""

    def is_initialized(self) -> bool:
        return False

    def init(self, **_: Any) -> None:
        raise AssertionError("Ray was started")


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is not installed")
def test_ray_workers_keep_the_same_contract():
    import ray

    from surefoot.scale.ray_backend import ray_backend

    spec = a_spec()
    ray.init(address="local", include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        assert check_backend(lambda: ray_backend(spec, 2, timeout=10.0), spec, weights_of(spec)) == []
    finally:
        ray.shutdown()


@pytest.mark.usefixtures("no_token")
def test_ray_is_not_started_implicitly_and_an_open_cluster_is_refused():
    from surefoot.scale.ray_backend import connect, has_token

    with pytest.raises(ConfigError, match="no Ray cluster is connected"):
        connect(NoRay(), "", allow_insecure_cluster=False)
    assert not has_token()
    with pytest.raises(ConfigError, match="require a token"):
        connect(NoRay(), "auto", allow_insecure_cluster=False)


@pytest.mark.usefixtures("no_token")
def test_here_starts_a_new_cluster():
    from surefoot.scale.ray_backend import connect

    asked: list[dict[str, Any]] = []

    class Started(NoRay):
        def init(self, **options: Any) -> None:
            asked.append(options)

    assert connect(Started(), "here", allow_insecure_cluster=False)
    assert asked[0]["address"] == "local"


@pytest.mark.parametrize("error", [ConnectionError("nobody"), RuntimeError("nobody"), LookupError("nobody")])
def test_a_failed_connection_is_a_config_error(error: Exception):
    from surefoot.scale.ray_backend import connect

    class Gone(NoRay):
        class exceptions:
            RayError = LookupError

        def init(self, **_: Any) -> None:
            raise error

    with pytest.raises(ConfigError, match=r"cluster at auto .* nobody"):
        connect(Gone(), "auto", allow_insecure_cluster=True)


@pytest.mark.usefixtures("no_token")
def test_a_token_in_rays_settings_allows_a_cluster(monkeypatch: pytest.MonkeyPatch):
    from surefoot.scale.ray_backend import has_token

    monkeypatch.setenv("RAY_AUTH_TOKEN", "x")
    assert has_token()
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    assert not has_token()
