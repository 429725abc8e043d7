"""`surefoot check`, `knobs` and `presets`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from surefoot.cli.main import main


def test_settings_are_found_by_their_other_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["knobs", "n_epochs", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["name"], row["config"]) == ("epochs", "PPOConfig")


def test_every_preset_is_listed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from surefoot.learn.presets import all_presets

    monkeypatch.setenv("COLUMNS", "200")
    assert main(["presets"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in all_presets())


def test_an_environment_that_breaks_training_is_a_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nan_env_of_settings.py").write_text(
        "import gymnasium as gym, numpy as np\n"
        "class Env(gym.Env):\n"
        "    observation_space = gym.spaces.Box(-1.0, 1.0, (2,))\n"
        "    action_space = gym.spaces.Discrete(2)\n"
        "    def reset(self, *, seed=None, options=None):\n"
        "        super().reset(seed=seed)\n"
        "        return np.zeros(2, np.float32), {}\n"
        "    def step(self, action):\n"
        "        return np.zeros(2, np.float32), float('nan'), True, False, {}\n"
    )
    assert main(["check", "nan_env_of_settings:Env", "--episodes", "1"]) == 1
    assert "error:" in capsys.readouterr().out
    assert main(["check", "CartPole-v1", "--episodes", "1"]) == 0
