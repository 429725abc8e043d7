"""The facade from end to end: it learns, worlds in processes work, and the code in the how-to pages runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from surefoot import PPO, evaluate_policy, make_vec_env

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"


def test_cartpole_is_learned_within_40_000_steps() -> None:
    model = PPO("MlpPolicy", "CartPole-v1", n_epochs=10, learning_rate=2e-3, clip_range=0.2, seed=0)
    model.learn(40_000)
    mean, _ = evaluate_policy(model, "CartPole-v1", n_eval_episodes=20)
    assert mean >= 400


def test_envs_in_processes_of_their_own_are_trained_in() -> None:
    world = make_vec_env("CartPole-v1", 2, backend="gymnasium", workers=2)
    try:
        model = PPO("MlpPolicy", world, n_steps=64)
        assert model.learn(256).num_timesteps == 256
        assert model.recent_return is not None
    finally:
        world.close()


@pytest.mark.parametrize("page", ["from-sb3.md", "bring-your-own-network.md"])
def test_the_code_of_a_page_runs_as_it_stands(page: str, tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", (HOW_TO / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks
    files = [tmp_path / f"block_{i}.py" for i in range(len(blocks))]
    for file, block in zip(files, blocks, strict=True):
        file.write_text(block, encoding="utf-8")
    # One interpreter, but each block in a namespace of its own: none may lean on the one before.
    driver = "import runpy, sys\nfor file in sys.argv[1:]:\n    runpy.run_path(file)"
    command = [sys.executable, "-c", driver, *map(str, files)]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
