"""Lines and directories of `PPO.learn`."""

from pathlib import Path

from surefoot.data.spaces import Discrete
from surefoot.train.learn_output import LearnOutput, curves_directory
from surefoot.train.spec import make_spec
from surefoot.train.training import Training


def test_a_new_run_gets_the_next_number_and_a_continued_one_the_last(tmp_path: Path) -> None:
    assert curves_directory(None, "PPO", fresh=True) is None
    assert curves_directory(tmp_path / "new", "PPO", fresh=False) == tmp_path / "new" / "PPO_1"
    for name in ("PPO_1", "PPO_9", "PPO_x", "Other_20"):
        (tmp_path / name).mkdir()
    assert curves_directory(tmp_path, "PPO", fresh=True) == tmp_path / "PPO_10"
    assert curves_directory(tmp_path, "PPO", fresh=False) == tmp_path / "PPO_9"


def test_one_line_every_so_many_updates(capsys) -> None:
    settings = {"n_envs": 2, "n_steps": 4, "n_epochs": 1, "batch_size": 8}
    training = Training(make_spec("CartPole-v1", Discrete(2), settings=settings, total_steps=32))
    with LearnOutput(training, lines_every=2, progress_bar=False, curves=None) as output:
        for report in training:
            output.add(report)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[:2] for line in lines] == [
        ["update 2", "steps 16/32"],
        ["update 4", "steps 32/32"],
    ]
