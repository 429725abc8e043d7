"""Every example runs from start to end, as its own process and in a directory of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SAID = {
    "compat/constitutional_ai_ppo.py": "mean reward",
    "compat/directive023_prompts.py": "5 updates",
    "compat/hololoom_tool_learning.py": "to the right tool",
    "custom_env.py": "check_env has nothing to complain about",
    "custom_network.py": "over 20 episodes",
    "hierarchy.py": "65 is the shortest way",
    "iterate.py": "over 20 deterministic episodes",
    "self_play.py": "against its first self",
    "train_and_watch.py": "pendulum.gif",
}


def run(name: str, where: Path, steps: int) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        cwd=where,
        env={
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "SUREFOOT_RUNS": str(where / "runs"),
            "SUREFOOT_EXAMPLE_STEPS": str(steps),
            "SUREFOOT_DEMO_STEPS": str(steps),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # The shortened runs are announced as such: a rollout is longer than they ask for, a preset sets what they do not.
    announced = ("this run trains", "the preset")
    assert [line for line in done.stderr.splitlines() if not line.startswith(announced)] == []
    return done.stdout


def test_there_is_a_test_for_every_example():
    assert {
        str(path.relative_to(EXAMPLES)) for folder in (".", "compat") for path in EXAMPLES.glob(f"{folder}/*.py")
    } == {*SAID, "demo.py"}


@pytest.mark.parametrize("name", SAID)
def test_an_example_runs_and_says_what_it_found(name: str, tmp_path: Path):
    # Of the tools a step is a user with a question: a real tool answers each, and every fifth is followed by an update.
    assert SAID[name] in run(name, tmp_path, steps=300 if name == "compat/hololoom_tool_learning.py" else 1000)


def test_the_demo_leaves_a_page_and_a_film_and_says_where(tmp_path: Path):
    said = run("demo.py", tmp_path, steps=600)
    (there,) = (tmp_path / "runs").iterdir()
    assert "<svg" in (there / "report.html").read_text()
    assert (there / "episode.gif").read_bytes().startswith(b"GIF8")
    assert str(there / "report.html") in said
    assert str(there / "episode.gif") in said


@pytest.mark.parametrize("name", SAID)
def test_an_example_fits_on_two_screens(name: str):
    assert len((EXAMPLES / name).read_text().splitlines()) <= 60
