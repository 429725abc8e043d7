"""What a search on Ray refuses, which needs no Ray."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from surefoot.cli.main import main
from surefoot.errors import ConfigError
from surefoot.scale.tune_ray import load_tune


def test_where_ray_tune_is_missing_the_extra_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "ray.tune", None)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"surefoot\[ray-tune\]"):
        load_tune()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--trial-backend", "dask"], 64, "it must be local, ray"),
        (["--search", "scheduler=pbt"], 64, "add --trial-backend ray"),
        (["--search", "scheduler=pbt", "--trial-backend", "ray", "--jobs", "2"], 64, "leave --jobs out"),
        (["--trial-backend", "ray"], 2, "pip install 'surefoot[ray-tune]'"),
    ],
)
def test_what_a_search_on_ray_refuses_leaves_no_directory(
    arguments: list[str],
    code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    pytest.importorskip("optuna")
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setitem(sys.modules, "ray.tune", None)
    assert main(["tune", "CartPole-v1", "--runs", str(tmp_path), *arguments]) == code
    assert said in " ".join(capsys.readouterr().err.split())
    assert not list(tmp_path.iterdir())
