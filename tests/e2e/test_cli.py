"""A new user's first minutes on the command line, and what they are told when something is wrong."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import gymnasium
import pytest

from surefoot.cli.main import VERBS, main

SUREFOOT = [sys.executable, "-m", "surefoot"]
STEPS = 2048


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


Call = Callable[..., Said]


def environment(runs: Path) -> dict[str, str]:
    return {**os.environ, "SUREFOOT_RUNS": str(runs), "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Said]:
    """A directory of runs with "first" in it, and what training it said."""
    runs = tmp_path_factory.mktemp("runs")
    command = [*SUREFOOT, "train", "CartPole-v1", "--steps", str(STEPS), "--name", "first"]
    done = subprocess.run(command, env=environment(runs), capture_output=True, text=True, check=False)
    return runs, Said(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """The command in this process, in an empty directory; what it returns is what the shell would get."""
    monkeypatch.chdir(tmp_path)

    def called(*words: str, runs: Path = tmp_path / "runs") -> Said:
        monkeypatch.setenv("SUREFOOT_RUNS", str(runs))
        capsys.readouterr()
        code = main(list(words))
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    return called


@pytest.fixture
def copied(trained: tuple[Path, Said], tmp_path: Path) -> Path:
    """The directory of runs, to be changed at will."""
    return Path(shutil.copytree(trained[0], tmp_path / "runs", symlinks=True))


def refused(said: Said, *words: str) -> None:
    """Exit code 2, and one sentence with these words on stderr."""
    assert said.code == 2
    assert said.err.startswith("surefoot ")
    assert said.err.count("\n") == 1, said.err
    assert "Traceback" not in said.out + said.err
    for word in words:
        assert word in said.err


def listed(call: Call, runs: Path) -> dict[str, dict[str, object]]:
    said = call("runs", "--json", runs=runs)
    assert said.code == 0
    return {row["run"]: row for row in json.loads(said.out)}


def test_training_in_a_pipe_prints_plain_lines_and_what_to_type_next(trained: tuple[Path, Said]):
    runs, said = trained
    assert (said.code, said.err) == (0, "")
    assert "\x1b" not in said.out
    assert "preset cartpole" in said.out
    assert "evaluation at" in said.out
    assert "steps/s" in said.out
    assert f"surefoot eval {runs / 'first'}" in said.out


def test_a_run_leaves_its_header_record_checkpoints_and_page(trained: tuple[Path, Said]):
    run = trained[0] / "first"
    assert json.loads((run / "run.json").read_text())["spec"]["env"] == "CartPole-v1"
    assert {path.name for path in run.iterdir()} >= {"telemetry.ndjson", "checkpoints", "report.html"}
    # Rollouts of CartPole's preset are 256 steps: 2048 steps are 8 updates.
    assert (run / "checkpoints" / "latest").resolve().name == "000008"


def test_eval_prints_a_score_and_the_same_one_as_json(trained: tuple[Path, Said], call: Call):
    told = call("eval", "first", "--episodes", "5", runs=trained[0])
    numbers = json.loads(call("eval", "first", "--episodes", "5", "--json", runs=trained[0]).out)
    assert told.code == 0
    assert len(numbers["returns"]) == 5
    assert numbers["mean"] == pytest.approx(sum(numbers["returns"]) / 5)
    assert f"{numbers['mean']:.1f} ±" in told.out


def test_report_writes_a_page_where_it_is_asked_to(trained: tuple[Path, Said], call: Call, tmp_path: Path):
    said = call("report", "first", "--out", str(tmp_path / "page.html"), runs=trained[0])
    assert said.code == 0
    assert "CartPole-v1" in (tmp_path / "page.html").read_text()
    assert "env steps    2,048" in said.out


def test_bench_measures_an_env_and_leaves_nothing_behind(call: Call, tmp_path: Path):
    said = call("bench", "Pendulum-v1", "--steps", "2048")
    assert said.code == 0
    assert "steps per second" in said.out
    assert "→ " in said.out
    assert not list(tmp_path.iterdir())


def test_runs_lists_the_run_with_its_state_and_steps(trained: tuple[Path, Said], call: Call):
    row = listed(call, trained[0])["first"]
    assert (row["env"], row["state"], row["env_steps"]) == ("CartPole-v1", "finished", STEPS)
    assert "first" in call("runs", runs=trained[0]).out


def test_play_writes_a_gif(trained: tuple[Path, Said], call: Call, tmp_path: Path):
    said = call("play", "first", "--out", str(tmp_path / "film.gif"), runs=trained[0])
    assert said.code == 0
    assert (tmp_path / "film.gif").read_bytes().startswith(b"GIF8")


def test_play_without_pillow_shows_the_episode_in_the_terminal(
    trained: tuple[Path, Said], call: Call, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.setattr("surefoot.train.render.time.sleep", lambda seconds: None)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    said = call("play", "first", runs=trained[0])
    assert said.code == 0
    assert "▀" in said.out
    assert "(no GIF: a GIF needs pillow" in said.out


PACKAGE = """
import gymnasium
from gymnasium.envs.classic_control import PendulumEnv

class Loud(PendulumEnv):
    def get_state(self): return {"state": self.state.copy(), "last_u": getattr(self, "last_u", None)}
    def set_state(self, saved): self.state, self.last_u = saved["state"].copy(), saved["last_u"]
    def reset(self, **options):
        print("hello from the env")
        return super().reset(**options)

gymnasium.register("pack/Loud-v0", Loud, max_episode_steps=20)
"""


def test_an_id_of_a_package_goes_through_every_verb(call: Call, tmp_path: Path):
    (tmp_path / "pack.py").write_text(PACKAGE)
    env = "pack:pack/Loud-v0"
    try:
        assert call("check", env).code == 0
        said = call("train", env, "--steps", "256", "--set", "rollout_steps=32", "--set", "envs=2", "--name", "loud")
        assert said.code == 0, said.err
        refused(call("resume", "loud", "--verify", "2"), f"--env {env}")
        said = call("resume", "loud", "--verify", "2", "--env", env)
        assert "2 of 2 updates bit-identical" in said.out, said.out + said.err
        said = call("play", "loud", "--env", env, "--out", "loud.gif")
        assert (said.code, (tmp_path / "loud.gif").exists()) == (0, True), said.err
        assert call("eval", "loud", "--env", env, "--episodes", "1").code == 0
    finally:
        sys.modules.pop("pack", None)
        gymnasium.registry.pop("pack/Loud-v0", None)


def test_a_finished_run_can_be_made_longer(copied: Path, call: Call):
    finished = call("resume", "first", runs=copied)
    assert finished.code == 0
    assert "is finished (2,048 steps)" in finished.out
    assert call("resume", "first", "--steps", "2560", runs=copied).code == 0
    assert listed(call, copied)["first"]["env_steps"] == 2560


def test_resume_verify_finds_every_update_identical(trained: tuple[Path, Said], call: Call):
    said = call("resume", "first", "--verify", "4", runs=trained[0])
    assert "4 of 4 updates bit-identical" in said.out
    assert said.code == 0


def test_ctrl_c_saves_and_resume_goes_on(tmp_path: Path, call: Call):
    runs = tmp_path / "runs"
    command = [*SUREFOOT, "train", "CartPole-v1", "--steps", "10_000_000", "--name", "long", "--eval-every", "0"]
    with subprocess.Popen(command, env=environment(runs), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        next(line for line in process.stdout if "steps/s" in line)
        refused(call("resume", "long", runs=runs), f"process {process.pid}")
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        assert process.wait(timeout=60) == 0
    assert "interrupted" in rest
    row = listed(call, runs)["long"]
    steps = row["env_steps"]
    assert isinstance(steps, int)
    assert row["state"] == "interrupted"
    assert call("resume", "long", "--steps", str(steps + 256), runs=runs).code == 0
    assert listed(call, runs)["long"]["env_steps"] == steps + 256


def test_several_seeds_print_their_interquartile_mean(call: Call):
    said = call("train", "CartPole-v1", "--seeds", "2", "--jobs", "2", "--steps", "512", "--name", "two")
    assert said.code == 0
    assert "two-s0" in said.out
    assert "two-s1" in said.out
    assert "IQM" in said.out
    assert "n=2" in said.out


def test_what_dry_run_prints_is_a_config_that_gives_the_same_settings(call: Call, tmp_path: Path):
    first = call("train", "Pendulum-v1", "--set", "lr=5e-4", "--dry-run")
    (tmp_path / "settings.yaml").write_text(first.out)
    again = call("train", "Pendulum-v1", "--config", "settings.yaml", "--dry-run")
    assert first.code == again.code == 0
    assert "lr: 0.0005" in first.out
    assert again.out == first.out
    assert not (tmp_path / "runs").exists()


def test_a_wrong_env_is_answered_with_the_right_one(call: Call):
    refused(call("train", "CartPol-v1"), "CartPol-v1", "did you mean CartPole-v1")


def test_a_setting_that_does_not_go_with_the_actions_is_refused(call: Call, tmp_path: Path):
    refused(call("train", "CartPole-v1", "--set", "gsde=true"), "gsde=True is for continuous actions")
    assert not list(tmp_path.glob("runs/*")), "nothing should be written before the settings are known to work"


def test_a_misspelt_setting_is_answered_with_the_right_one(call: Call):
    refused(call("train", "CartPole-v1", "--set", "learning_rat=1"), "learning_rat", "learning_rate")


def test_a_wrong_key_in_a_config_file_is_named(call: Call, tmp_path: Path):
    (tmp_path / "settings.yaml").write_text("lr: 0.001\nepoch: 4\n")
    refused(call("train", "CartPole-v1", "--config", "settings.yaml"), "epoch", "did you mean")


NAN_WORLD = """
import gymnasium as gym
import numpy as np

class Sour(gym.Env):
    observation_space = gym.spaces.Box(-1.0, 1.0, (2,))
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.t += 1
        reward = float("nan") if self.t == 5 else 1.0
        return np.zeros(2, np.float32), reward, self.t == 9, False, {}
"""


def test_an_env_that_answers_with_nan_is_named_with_stream_and_step(call: Call, tmp_path: Path):
    (tmp_path / "sour_world.py").write_text(NAN_WORLD)
    refused(call("train", "sour_world:Sour", "--steps", "2048"), "stream 0", "step 5 of its episode", "reward nan")


def test_a_checkpoint_that_is_not_there_is_answered_with_those_that_are(trained: tuple[Path, Said], call: Call):
    refused(call("eval", "first", "--checkpoint", "777", runs=trained[0]), "'777'", "000008")


def test_a_checkpoint_of_another_policy_is_refused(trained: tuple[Path, Said], call: Call):
    refused(call("eval", "first", "--env", "Acrobot-v1", runs=trained[0]), "the policy observes", "Acrobot-v1")


def test_a_damaged_checkpoint_is_named(copied: Path, call: Call):
    weights = copied / "first" / "checkpoints" / "000008" / "weights.safetensors"
    flipped = bytearray(weights.read_bytes())
    flipped[-1] ^= 1
    weights.write_bytes(flipped)
    refused(call("eval", "first", "--checkpoint", "8", runs=copied), "weights.safetensors", "checksum")


def test_a_run_that_is_not_there_is_answered_with_one_that_is(trained: tuple[Path, Said], call: Call):
    refused(call("eval", "frist", runs=trained[0]), "did you mean first?")


def test_a_name_that_is_taken_is_refused_with_the_way_to_go_on(trained: tuple[Path, Said], call: Call):
    refused(call("train", "CartPole-v1", "--name", "first", runs=trained[0]), "surefoot resume")


@pytest.mark.parametrize(
    "words", [["train", "CartPole-v1", "--stepz", "5"], ["train"], ["tarin", "CartPole-v1"], ["eval", "a", "b"], []]
)
def test_a_wrong_command_line_is_64(words: list[str], call: Call):
    said = call(*words)
    assert said.code == 64
    assert "Traceback" not in said.err


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_each_verb_says_how_to_use_it(verb: str, call: Call):
    said = call(verb, "--help")
    assert said.code == 0
    assert f"surefoot {verb}" in said.out


def test_help_and_version_need_no_verb(call: Call):
    words = call("--help").out.replace("{", " ").replace("}", " ").replace(",", " ").split()
    assert all(word in words for verb in VERBS for word in verb.split())
    assert call("--version").out.startswith("surefoot ")


def test_a_run_whose_record_is_switched_off_leaves_no_file_of_it_and_says_so(call: Call, tmp_path: Path):
    runs = tmp_path / "runs"
    said = call("train", "CartPole-v1", "--steps", "512", "--name", "quiet", "--telemetry", "off", runs=runs)
    assert said.code == 0
    assert "no telemetry is written (--telemetry off)" in said.out
    assert "report.html" not in said.out
    assert sorted(p.name for p in (runs / "quiet").iterdir() if p.name[0] != ".") == ["checkpoints", "run.json"]
    assert listed(call, runs)["quiet"]["state"] == "not recorded"
    assert "no telemetry is written" in call("resume", "quiet", "--steps", "1024", runs=runs).out
    refused(call("telemetry", "summary", "quiet", runs=runs), "has no telemetry.ndjson", "--telemetry off")
    assert call("train", "CartPole-v1", "--record-minibatches", "2", runs=runs).code == 64


def test_a_tracker_that_is_not_installed_is_one_sentence_and_leaves_no_run(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "wandb", None)
    said = call("train", "CartPole-v1", "--steps", "512", "--name", "tracked", "--track", "wandb")
    refused(said, "wandb is not installed", "surefoot[track]")
    assert not (tmp_path / "runs" / "tracked").exists()
