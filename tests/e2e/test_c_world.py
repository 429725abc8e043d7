"""A world in C from source to a trained policy: compiled, checked, trained, evaluated, resumed."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from surefoot import make_world, native
from surefoot.cli.main import main
from surefoot.envs.check import check_env
from surefoot.envs.register import WorldEnv

EXAMPLE = Path(__file__).parents[2] / "examples" / "c_world"

pytestmark = [
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler"),
    pytest.mark.skipif(native.kernel is None, reason=native.why_not),
]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SUREFOOT_RUNS", str(tmp_path / "runs"))


def build() -> str:
    """The example's world in the current directory, compiled the way its first lines say, with all warnings."""
    flags = ["-O2", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", f"-I{native.include_dir()}"]
    subprocess.run(["cc", *flags, str(EXAMPLE / "lander.c"), "-o", "lander.so", "-lm"], check=True)
    return "./lander.so"


def scores(choice: np.ndarray) -> float:
    """Mean return of one choice for ever, over a thousand landers."""
    world = make_world(build(), len(choice), allow_import=True)
    world.reset(3)
    total, going = np.zeros(len(choice)), np.ones(len(choice), bool)
    for _ in range(300):
        step = world.step(choice)
        total += np.where(going, step.reward, 0.0)
        going &= ~(step.terminated | step.truncated)
    assert not going.any()
    return float(total.mean())


def test_the_lander_is_sound_and_not_landed_by_doing_nothing():
    assert check_env(WorldEnv(make_world(build(), allow_import=True))) == []
    assert scores(np.zeros(1000, np.int64)) < 0
    assert scores(np.ones(1000, np.int64)) < 0


def test_the_example_runs_and_says_what_it_found(tmp_path: Path):
    env = {**os.environ, "OMP_NUM_THREADS": "1", "SUREFOOT_EXAMPLE_STEPS": "2048"}
    done = subprocess.run(
        [sys.executable, str(EXAMPLE / "train.py")], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "check_env has nothing to complain about" in done.stdout
    assert "over 100 episodes" in done.stdout


def test_the_lander_is_landed_from_the_command_line(capsys: pytest.CaptureFixture[str]):
    lander = build()
    assert main(["check", lander]) == 0
    assert main(["train", lander, "--steps", "80_000", "--seed", "1", "--name", "lander", "--display", "quiet"]) == 0
    capsys.readouterr()
    assert main(["eval", "lander", "--env", lander, "--episodes", "50", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["mean"] > 5.0
    assert main(["resume", "lander", "--steps", "32_000", "--display", "quiet"]) == 2
    assert f"pass it again: --env {lander}" in capsys.readouterr().err
    assert main(["resume", "lander", "--env", lander, "--steps", "32_000", "--display", "quiet"]) == 0


def test_a_run_is_called_after_its_library():
    assert main(["train", build(), "--steps", "2048", "--display", "quiet"]) == 0
    (run,) = Path("runs").iterdir()
    assert run.name.startswith("lander-")
