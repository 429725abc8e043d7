"""Wrong calls of `surefoot lm` as ordinary users make them: one clear sentence each, never a traceback."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
pytest.importorskip("transformers")
sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "lm"))

from lm_helpers import VOCABULARY, char_tokenizer, tiny

from surefoot.cli.main import main

CODE = """
def fine(prompt, response): return float(len(response))
def one(x): return 1.0
def three(prompt, response, gold): return 1.0
def text(prompt, response): return "good"
def few(prompts, responses): return [1.0]
def raises(prompt, response): return {}["score"]
def nan(prompt, response): return float("nan")
number = 3
def judge_raises(responses): return {}["x"]
def judge_nan(responses): return [float("nan")] * len(responses)
"""
FILES = {
    "prompts.txt": "hello\nwhat is it\n",
    "empty.txt": "",
    "blank.txt": "\n\n",
    "bad.jsonl": '{"prompt": "a"}\n{"prompt": \n',
    "nokey.jsonl": '{"txt": "a"}\n',
    "role.jsonl": '{"messages": [{"role": "robot", "content": "x"}]}\n',
    "number.jsonl": '{"prompt": 3}\n',
    "chat.jsonl": '{"messages": [{"role": "user", "content": "x"}]}\n',
    "data.xls": "x",
    "long.txt": "a" * 500 + "\n",
    "pairs.jsonl": "".join(json.dumps({"prompt": f"p{i}", "chosen": "aa", "rejected": "bb"}) + "\n" for i in range(12)),
    "same.jsonl": '{"prompt": "p", "chosen": "a", "rejected": "a"}\n',
    "nochosen.jsonl": '{"prompt": "p", "rejected": "a"}\n',
    "one.jsonl": '{"prompt": "p", "chosen": "a", "rejected": "b"}\n',
    "noresponse.jsonl": '{"prompt": "p"}\n',
    "cai.yaml": "{model: model, prompts: prompts.txt, held_out: prompts.txt}",
    "unknown.yaml": "{model: model, prompts: prompts.txt, held_out: held.txt, rouds: 2}",
    "nomodel.yaml": "{prompts: prompts.txt, held_out: held.txt}",
    "broken.yaml": "model: [",
    "judge.yaml": "{model: model, prompts: prompts.txt, held_out: held.txt, judge: me}",
}
FAST = "max_new_tokens=4 steps=1 prompts=2 dtype=float32"


def ppo(*words, reward="wrong_rewards:fine", prompts="prompts.txt", model="model", sets=""):
    settings = [w for knob in f"{FAST} {sets}".split() for w in ("--set", knob)]
    return ["lm", "ppo", "--model", model, "--prompts", prompts, "--reward", reward, *settings, *words]


def dpo(*words, pairs="pairs.jsonl", sets=""):
    settings = [w for knob in f"{FAST} {sets}".split() for w in ("--set", knob)]
    return ["lm", "dpo", "--model", "model", "--pairs", pairs, *settings, *words]


CALLS = [
    (["lm", "ppo"], "--model is missing"),
    (ppo(prompts="nowhere.txt"), "there is no file nowhere.txt"),
    (ppo(prompts="empty.txt"), "empty.txt has no prompts"),
    (ppo(prompts="blank.txt"), "blank.txt has no prompts"),
    (ppo(prompts="bad.jsonl"), "bad.jsonl:2 is not JSON"),
    (ppo(prompts="nokey.jsonl"), "a prompt is called prompt, text"),
    (ppo(prompts="role.jsonl"), "role: system|user|assistant"),
    (ppo(prompts="number.jsonl"), "a prompt is text or a list of messages"),
    (ppo(prompts="chat.jsonl"), "has no chat template"),
    (ppo(prompts="data.xls"), "none of .txt, .jsonl, .csv, .parquet"),
    (ppo(prompts="long.txt"), "prompt 1 has 500 tokens"),
    (ppo(model="/nowhere/model"), "there is no folder /nowhere/model"),
    (ppo(model="empty_folder"), "no causal language model at empty_folder"),
    (ppo(reward="wrong_rewards:missing"), "wrong_rewards"),
    (ppo(reward="no_such_module:f"), "no_such_module"),
    (ppo(reward="wrong_rewards"), "wrong_rewards"),
    (ppo(reward="wrong_rewards:number"), "is not a reward"),
    (ppo(reward="wrong_rewards:one"), "the reward one takes (x)"),
    (ppo(reward="wrong_rewards:three"), "the reward three takes (prompt, response, gold)"),
    (ppo(reward="wrong_rewards:text"), "it must return one number per response"),
    (ppo(reward="wrong_rewards:few"), "returned 1 numbers for 2 responses"),
    (ppo(reward="wrong_rewards:raises"), "raised KeyError: 'score'"),
    (ppo(reward="wrong_rewards:nan"), "none of 2 scores is a finite number"),
    (ppo(reward="empty_folder"), "empty_folder holds no reward model"),
    (ppo("--judge", "wrong_rewards:judge_nan"), "the judge has no prompts"),
    (
        ppo("--judge", "wrong_rewards:judge_raises", "--judge-prompts", "prompts.txt"),
        "the judge judge_raises raised KeyError",
    ),
    (ppo("--judge", "wrong_rewards:judge_nan", "--judge-prompts", "prompts.txt"), "is a finite number"),
    (ppo("--device", "cuda:7"), "device=cuda:7 does not work here"),
    (ppo("--device", "gpu"), "device=gpu does not work here"),
    (ppo(sets="foo=1"), "foo"),
    (ppo(sets="steps=many"), "steps"),
    (ppo(sets="temperature=0"), "temperature"),
    (ppo(sets="algorithm=grpo"), "group must be 2 or more"),
    (ppo(sets="algorithm=dpo"), "`surefoot lm dpo --pairs FILE` runs it"),
    (ppo(sets="kl=k3"), "k3"),
    (ppo(sets="top=99"), "99"),
    (ppo(sets="targets=nothing"), "nothing"),
    (ppo(sets="chat=always"), "has no chat template"),
    (ppo(sets="nll_limit=0.1"), "pass --judge-prompts FILE"),
    (["lm", "ppo", "--resume", "nowhere", "--reward", "wrong_rewards:fine"], "no run called 'nowhere'"),
    (ppo("--name", "a/b"), "not a valid name for a run"),
    (dpo(pairs="same.jsonl"), "chosen and rejected are the same"),
    (dpo(pairs="nochosen.jsonl"), "has no text 'chosen'"),
    (dpo(pairs="one.jsonl"), "1 of 1 pairs can be used"),
    (dpo(sets="beta=0"), "beta is 0"),
    (["lm", "reward", "--model", "model", "--pairs", "one.jsonl", "-o", "r"], "1 pairs are too few"),
    (["lm", "reward", "--model", "/nowhere/m", "--pairs", "pairs.jsonl", "-o", "r"], "there is no folder /nowhere/m"),
    (["lm", "sft", "--model", "model", "--data", "noresponse.jsonl", "-o", "s"], "has no text 'response'"),
    (["lm", "sft", "--model", "model", "--data", "pairs.jsonl", "-o", "s", "--set", "beta=2"], "response"),
    (["lm", "chat", "nowhere", "--prompt", "hi"], "no run called 'nowhere'"),
    (["lm", "report", "nowhere"], "no run called 'nowhere'"),
    (["lm", "export", "nowhere", "-o", "x"], "no run called 'nowhere'"),
    (
        [
            "lm",
            "eval",
            "model",
            "/nowhere/m",
            "--prompts",
            "prompts.txt",
            "--judge",
            "wrong_rewards:fine",
            "--tokens",
            "4",
        ],
        "there is no folder",
    ),
    (["lm", "get", "gpt5"], "choose one of tiny, smollm2, minilm"),
    (["lm", "constitution", "run", "nowhere.yaml"], "cannot read nowhere.yaml"),
    (["lm", "constitution", "run", "unknown.yaml"], "unknown.yaml has 'rouds'"),
    (["lm", "constitution", "run", "nomodel.yaml"], "has no model"),
    (["lm", "constitution", "run", "broken.yaml"], "cannot read broken.yaml"),
    (["lm", "constitution", "run", "judge.yaml"], "it must be rules, model, classifier or [MODEL@]URL"),
    (["lm", "constitution", "run", "cai.yaml"], "prompts are in both files"),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("wrong")
    tiny(vocabulary=VOCABULARY).save_pretrained(place / "model")
    char_tokenizer().save_pretrained(place / "model")
    (place / "empty_folder").mkdir()
    (place / "wrong_rewards.py").write_text(CODE)
    for name, text in FILES.items():
        (place / name).write_text(text)
    return place


@pytest.mark.parametrize(("words", "sentence"), CALLS, ids=range(len(CALLS)))
def test_a_wrong_call_is_one_clear_sentence(place, monkeypatch, capsys, words, sentence):
    monkeypatch.chdir(place)
    monkeypatch.syspath_prepend(str(place))
    monkeypatch.setenv("SUREFOOT_RUNS", str(place / "runs"))
    assert main(words) in (2, 64)
    lines = [line for line in capsys.readouterr().err.splitlines() if line.strip() and "it/s]" not in line]
    assert len(lines) == 1, lines
    assert sentence in lines[0]
    assert "Traceback" not in lines[0]


def test_there_are_at_least_48_of_them():
    assert len(CALLS) >= 48
