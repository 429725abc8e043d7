"""A language model scores texts: by a reward model, or by what it answers."""

from __future__ import annotations

import pytest
from lm_helpers import VOCABULARY, char_tokenizer, tiny

from surefoot.cli.main import main
from surefoot.lm import scorer
from surefoot.lm.data import PreferencePair
from surefoot.lm.load_run import save_reward
from surefoot.lm.policy.loading import Speech
from surefoot.lm.rewards.reward_fit import train_reward_model
from surefoot.lm.rewards.reward_model import RewardModel


@pytest.fixture
def folder(tmp_path):
    model, words = tiny(vocabulary=VOCABULARY), char_tokenizer()
    model.save_pretrained(tmp_path / "tiny")
    words.save_pretrained(tmp_path / "tiny")
    return tmp_path / "tiny"


def test_a_reward_model_gives_more_to_what_it_was_taught_to_prefer(folder, tmp_path):
    model = tiny(vocabulary=VOCABULARY)
    judge = RewardModel(model, frozen=True)
    pairs = [
        PreferencePair("", f"{a} please", f"{a} now!")
        for a in ("go", "come", "sit", "look", "write", "read", "stop", "wait")
    ]
    fit = train_reward_model(judge, pairs, Speech(char_tokenizer(), model), epochs=60, lr=3e-2, validation=0.0)
    score = scorer(save_reward(judge, tmp_path / "judge", base=str(folder), fit=fit))
    assert 0.0 < score("run now!") < 0.5 < score("run please") < 1.0
    assert score("") == 0.0


def test_a_model_is_asked_for_yes_or_no_and_the_two_make_one(folder):
    score = scorer(folder)
    turned = scorer(folder, question="{text}")
    found = [score("write a poem"), turned("write a poem")]
    assert all(0.0 < p < 1.0 for p in found)
    assert found[0] != found[1], "what is asked must matter"
    assert score("write a poem") == found[0]
    assert score("  ") == 0.0


def test_prompts_are_judged_by_a_language_model(folder, tmp_path, monkeypatch, capsys):
    (tmp_path / "p.txt").write_text("Write a poem.\nWrite code.\n")
    monkeypatch.chdir(tmp_path)
    asked = ["prompts", "rlaif", "--prompts", "p.txt", "--rounds", "1", "--human-every", "0", "-n", "40"]
    assert main([*asked, "--judge", "lm:tiny", "--name", "r", "--runs", "runs"]) == 0
    assert "the judge prefers the policy's version" in capsys.readouterr().out
    words = [
        "prompts",
        "train",
        "--prompts",
        "p.txt",
        "--scorer",
        "lm:tiny",
        "--name",
        "s",
        "--runs",
        "runs",
        "-n",
        "20",
    ]
    assert main(words) == 0


def test_a_model_that_is_not_there_is_one_sentence(tmp_path, monkeypatch, capsys):
    (tmp_path / "p.txt").write_text("Write a poem.\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SUREFOOT_CACHE", str(tmp_path / "empty"))
    assert main(["prompts", "train", "--prompts", "p.txt", "--scorer", "lm"]) == 2
    assert "run `surefoot lm get smollm2`" in capsys.readouterr().err
