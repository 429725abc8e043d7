"""Record, clone, go on with PPO: on the command line, from a file and from Minari."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from surefoot.cli.main import main


@pytest.fixture(scope="module")
def expert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of runs with a CartPole expert in it, and its episodes."""
    runs = tmp_path_factory.mktemp("runs")
    train = "train CartPole-v1 --steps 60000 --seed 1 --name expert --display quiet --eval-every 0 --runs"
    assert main([*train.split(), str(runs)]) == 0
    # 8: with 4 (3 to learn from, 1 held out) two of nine clones scored below 200, with 8 all nine scored 500.
    assert main(["record", "expert", "--episodes", "8", "--runs", str(runs)]) == 0
    return runs


def test_a_clone_plays_like_its_expert_and_ppo_goes_on_from_it(expert: Path, capsys: pytest.CaptureFixture[str]):
    where = ["--runs", str(expert)]
    dataset = str(expert / "expert" / "episodes.safetensors")
    assert main(["clone", dataset, "--env", "CartPole-v1", "--name", "cloned", *where]) == 0
    assert "`surefoot resume cloned` continues with PPO" in capsys.readouterr().out
    assert main(["eval", "cloned", "--episodes", "20", "--json", *where]) == 0
    assert json.loads(capsys.readouterr().out)["mean"] > 400
    train = ["train", "CartPole-v1", "--from", "cloned", "--name", "more", "--steps", "4096", "--display", "quiet"]
    assert main([*train, *where]) == 0
    assert main(["eval", "more", "--episodes", "20", "--json", *where]) == 0
    assert json.loads(capsys.readouterr().out)["mean"] > 300
    assert main(["resume", "cloned", "--steps", "2048", "--display", "quiet", *where]) == 0


def test_minari_takes_the_same_way(expert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("minari")
    pytest.importorskip("h5py")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    where = ["--runs", str(expert)]
    assert main(["record", "expert", "--episodes", "2", "--minari", "cartpole/expert-v0", *where]) == 0
    clone = ["clone", "cartpole/expert-v0", "--env", "CartPole-v1", "--epochs", "2", "--quiet", "--no-critic"]
    assert main([*clone, *where]) == 0


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["clone", "none.safetensors", "--env", "CartPole-v1"], 2, "`surefoot record RUN` writes one"),
        (["clone", "DATASET", "--env", "Acrobot-v1"], 2, "use the env it was made for"),
        (["clone", "DATASET", "--env", "CartPole-v1", "--clone", "validation=1"], 64, "validation is 1"),
        (["record", "expert", "--out", "a", "--minari", "b"], 64, "pass one of them"),
        (["train", "CartPole-v1", "--from", "nobody"], 2, "no run called 'nobody'"),
        (["train", "Acrobot-v1", "--from", "expert"], 2, "use the env it was made for"),
    ],
    ids=lambda x: " ".join(x) if isinstance(x, list) else None,
)
def test_what_cannot_be_is_one_sentence(
    expert: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, says: str
):
    dataset = str(expert / "expert" / "episodes.safetensors")
    words = [dataset if word == "DATASET" else word for word in words]
    assert main([*words, "--runs", str(expert)]) == code
    assert says in capsys.readouterr().err
