"""Loading what earlier commands saved."""

from __future__ import annotations

import json

import pytest
import torch
from lm_helpers import VOCABULARY, tiny

from surefoot.errors import ConfigError
from surefoot.lm import load_run
from surefoot.lm.load_run import load_policy, load_reward, reward_base, save_reward
from surefoot.lm.rewards.reward_fit import RewardFit
from surefoot.lm.rewards.reward_model import RewardModel
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


@pytest.mark.parametrize(
    "kind",
    [{"frozen": True}, {}, {"frozen": True, "rank": 2, "pooling": "attention"}, {"frozen": True, "pooling": "mean"}],
)
def test_a_reward_model_is_loaded_as_it_was_saved(tmp_path, monkeypatch, kind):
    base = tiny(vocabulary=VOCABULARY)
    model = RewardModel(base, **kind).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter += 0.1 * torch.randn_like(parameter)
    save_reward(model, tmp_path, base="tiny", fit=RewardFit(losses=[0.5], accuracy=[1.0]))
    monkeypatch.setattr(load_run, "load_model", lambda name, *, dtype, device: base)
    again = load_reward(tmp_path).eval()
    ids, mask = torch.tensor([[5, 6, 7]]), torch.ones(1, 3, dtype=torch.int64)
    assert torch.equal(again(ids, mask), model(ids, mask))
