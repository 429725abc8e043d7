"""How rollout_steps and envs follow from each other, and where a model may be saved."""

from pathlib import Path

import pytest

from surefoot.errors import CheckpointError, CheckpointIncompatible
from surefoot.learn.config import PPOConfig
from surefoot.learn.presets import preset
from surefoot.train.assemble import keep_rollout, read_model, refuse_other_place

CARTPOLE = PPOConfig(**preset("cartpole").ppo)  # 8 envs of 32 steps


@pytest.mark.parametrize(
    ("explicit", "fixed", "expected"),
    [
        ({"envs": 2}, None, (2, 128)),
        ({"rollout_steps": 64}, None, (4, 64)),
        ({"envs": 2, "rollout_steps": 8}, None, (2, 8)),
        ({}, 1, (1, 256)),
        ({"envs": 1000}, None, (1000, 16)),  # never fewer than 16 steps
        ({}, None, (8, 32)),
    ],
)
def test_the_rollout_keeps_the_size_of_its_preset(explicit, fixed, expected) -> None:
    ppo = keep_rollout(CARTPOLE.replace(**explicit), set(explicit), "cartpole", fixed)
    assert (ppo.envs, ppo.rollout_steps) == expected


def test_a_model_is_not_saved_over_other_files(tmp_path: Path) -> None:
    refuse_other_place(tmp_path / "new")
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(CheckpointError, match="contains other files"):
        refuse_other_place(tmp_path)
    with pytest.raises(CheckpointError, match="is a file"):
        refuse_other_place(tmp_path / "notes.txt")


def test_a_zip_of_sb3_is_refused_with_the_way_to_convert_it(tmp_path: Path) -> None:
    (tmp_path / "model.zip").write_bytes(b"PK")
    with pytest.raises(CheckpointIncompatible, match="surefoot import sb3"):
        read_model(tmp_path / "model")
