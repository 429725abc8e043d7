"""Whether a Ray cluster demands a token is asked of the cluster, by a process that has none."""

from __future__ import annotations

import importlib
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from surefoot.errors import ConfigError
from surefoot.scale import ray_backend, ray_probe


class RefusedError(Exception):
    """Stands for `ray.exceptions.AuthenticationError`, a kind of RayError."""


def cluster(answer: Any, monkeypatch: pytest.MonkeyPatch, address: str | None = "1.2.3.4:6379") -> Any:
    """Modules of Ray in front of a cluster that answers with `answer`, or raises it."""

    class Client:
        def __init__(self, address: str) -> None:
            assert address == "1.2.3.4:6379"

        def internal_kv_keys(self, *_: Any) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer

    services = SimpleNamespace(canonicalize_bootstrap_address=lambda given: address if given == "auto" else given)
    modules = {"ray._raylet": SimpleNamespace(GcsClient=Client), "ray._private.services": services}
    monkeypatch.setattr(importlib, "import_module", modules.__getitem__)
    return SimpleNamespace(exceptions=SimpleNamespace(AuthenticationError=RefusedError, RayError=LookupError))


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ([b"cluster_id"], "no"),
        (RefusedError("token missing"), "yes"),
        (RuntimeError("Timed out\nwhile waiting"), "Timed out while waiting"),
        (ConnectionError(), "ConnectionError"),
    ],
)
def test_an_answer_without_a_token_shows_that_none_is_demanded(monkeypatch, answer, result):
    assert ray_probe.ask(cluster(answer, monkeypatch), "auto") == result


def test_an_address_without_a_cluster_is_named(monkeypatch):
    assert ray_probe.ask(cluster([], monkeypatch, None), "auto") == "there is no cluster at auto"


def test_the_question_is_asked_without_the_token_of_this_machine():
    mine = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "secret", "RAY_AUTH_TOKEN_PATH": "/x", "PATH": "/bin"}
    assert ray_probe.without_token(mine) == {"RAY_AUTH_MODE": "disabled", "PATH": "/bin"}


def test_the_last_line_of_the_process_is_the_answer(monkeypatch):
    calls: list[Any] = []

    def run(command: list[str], **options: Any) -> Any:
        calls.append((command, options["env"]))
        if options["timeout"] < 1:
            raise subprocess.TimeoutExpired(command, options["timeout"])
        return SimpleNamespace(stdout=out, stderr="a log\nImportError: no ray\n", returncode=1)

    monkeypatch.setenv("RAY_AUTH_TOKEN", "secret")
    monkeypatch.setattr(subprocess, "run", run)
    out = "noise of Ray\nyes\n"
    assert ray_probe.token_demanded("h:1") == "yes"
    assert calls[0][0] == [sys.executable, "-m", "surefoot.scale.ray_probe", "h:1"]
    assert "RAY_AUTH_TOKEN" not in calls[0][1]
    out = ""
    assert ray_probe.token_demanded("h:1") == "ImportError: no ray"
    monkeypatch.setattr(ray_probe, "PATIENCE", 0.5)
    assert ray_probe.token_demanded("h:1") == "no answer within 0 s"


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ("no", "cluster at h:1 answers requests without a token, so anyone who reaches it can run code"),
        ("there is no cluster at h:1", r"not known to require a token \(there is no cluster at h:1\)"),
    ],
)
def test_a_cluster_that_does_not_demand_the_token_that_is_here_is_refused(monkeypatch, answer, sentence):
    monkeypatch.setenv("RAY_AUTH_TOKEN", "secret")
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    monkeypatch.setattr(ray_backend, "token_demanded", lambda _: answer)
    started: list[Any] = []
    ray: Any = SimpleNamespace(is_initialized=lambda: False, init=lambda **options: started.append(options))
    with pytest.raises(ConfigError, match=sentence):
        ray_backend.connect(ray, "h:1", allow_insecure_cluster=False)
    assert started == []
    monkeypatch.setattr(ray_backend, "token_demanded", lambda _: "yes")
    assert not ray_backend.connect(ray, "h:1", allow_insecure_cluster=False)
    assert started[0]["address"] == "h:1"
