"""Loading what earlier commands saved."""

from __future__ import annotations

import json

import pytest

from surefoot.errors import ConfigError
from surefoot.lm.load_run import load_policy, load_reward, reward_base
from surefoot.train.rundir.rundir import RunDir


def test_the_base_of_a_reward_model_is_read_from_its_folder(tmp_path):
    assert reward_base(tmp_path) is None
    (tmp_path / "reward.json").write_text(json.dumps({"base": "smollm2"}))
    assert reward_base(tmp_path) == "smollm2"


def test_a_folder_without_a_reward_model_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="holds no reward model"):
        load_reward(tmp_path)


def test_a_run_of_another_kind_is_refused(tmp_path):
    (tmp_path / "run.json").write_text(json.dumps({"spec": {"env": "CartPole-v1"}}))
    with pytest.raises(ConfigError, match="is not a language run"):
        load_policy(RunDir(tmp_path))
