"""`surefoot lm` as people use it, on a tiny model saved as a folder: trained, killed, resumed, looked at, exported."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read when transformers is loaded: a name that is no folder fails at once
pytest.importorskip("transformers")
sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "lm"))

from lm_helpers import VOCABULARY, char_tokenizer, tiny

from surefoot.cli.main import main

REWARD = """
import os, signal

calls = 0

def vowels(prompt, response):
    global calls
    calls += 1
    if calls == int(os.environ.get("DIE_AT", 0)):
        os.kill(os.getpid(), signal.SIGKILL)
    return sum(c in "aeiou" for c in response) / max(1, len(response))

def raises(prompt, response):
    raise RuntimeError("no scorer here")

later = 0

def fails_later(prompt, response):
    global later
    later += 1
    return 1.0 if later <= 4 else raises(prompt, response)
"""
KNOBS = ["max_new_tokens=6", "prompts=4", "checkpoint_every=2", "lr=1e-3", "kl_target=2", "top_k=30", "dtype=float32"]


@pytest.fixture
def place(tmp_path, monkeypatch):
    tiny(vocabulary=VOCABULARY).save_pretrained(tmp_path / "tiny")
    char_tokenizer(chat=True).save_pretrained(tmp_path / "tiny")
    (tmp_path / "prompts.txt").write_text("hello\nwhat is it\ngo on\nyes\nno\n")
    (tmp_path / "my_rewards.py").write_text(REWARD)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SUREFOOT_RUNS", str(tmp_path / "runs"))
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def ppo(*more, steps=6, reward="my_rewards:vowels"):
    words = ["lm", "ppo", "--model", "tiny", "--prompts", "prompts.txt", "--reward", reward, "--set", f"steps={steps}"]
    return [*words, *(w for knob in KNOBS for w in ("--set", knob)), *more]


def child(words, **env):
    return subprocess.run(
        [sys.executable, "-m", "surefoot", *words],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": "", **env},
        capture_output=True,
        text=True,
        check=False,
    )


def weights(run):
    return (Path("runs") / run / "checkpoints" / "latest" / "weights.safetensors").read_bytes()


def test_killed_in_mid_step_it_goes_on_bit_for_bit(place):
    assert main(ppo("--name", "whole")) == 0
    dead = child(ppo("--name", "broken"), DIE_AT="14")  # in the fourth step; the last checkpoint is of the second
    assert dead.returncode == -signal.SIGKILL, dead.stderr
    assert (place / "runs/broken/checkpoints/000002").is_dir()
    assert main(["lm", "ppo", "--resume", "broken", "--reward", "my_rewards:vowels"]) == 0
    assert weights("broken") == weights("whole")
    told = [
        [json.loads(x) for x in (place / f"runs/{n}/samples.ndjson").read_text().splitlines()]
        for n in ("whole", "broken")
    ]
    assert told[0] == told[1]


def test_trained_looked_at_exported_and_loaded_again(place, capsys):
    assert main(ppo("--name", "one", steps=3)) == 0
    shown = capsys.readouterr().out
    assert "tok/s" in shown
    assert "eta" in shown
    main(["lm", "report", "one"])
    assert "score" in capsys.readouterr().out
    assert main(["lm", "chat", "one", "--prompt", "hello", "--tokens", "5", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert set(said) == {"prompt", "base", "trained"}
    assert main(["lm", "export", "one", "--merge", "-o", "out"]) == 0
    from transformers import AutoModelForCausalLM

    assert AutoModelForCausalLM.from_pretrained("out").config.vocab_size == VOCABULARY
    assert "| steps | 3 |" in Path("out/README.md").read_text()
    capsys.readouterr()
    assert main(["lm", "export", "one", "--merge", "-o", "out"]) == 2
    assert "is not empty" in capsys.readouterr().err
    assert main(["doctor", "one"]) in (0, 1)
    assert main(["runs"]) == 0
    capsys.readouterr()
    assert main(["resume", "one"]) == 2
    assert "resume it with `surefoot lm ppo --resume one --reward …`" in capsys.readouterr().err


def test_a_reward_that_fails_costs_nothing_and_the_run_can_go_on(place, capsys):
    assert main(ppo("--name", "bad", reward="my_rewards:raises")) == 2
    assert "no scorer here" in capsys.readouterr().err
    assert not (place / "runs" / "bad").exists()  # nothing was learned, so there is nothing to continue
    assert main(ppo("--name", "bad", reward="my_rewards:fails_later")) == 2
    assert main(["lm", "ppo", "--resume", "bad", "--reward", "my_rewards:vowels"]) == 2
    assert "the run was started with 'my_rewards:fails_later'" in capsys.readouterr().err


def test_a_run_with_a_judge_is_not_resumed_without_it(place, capsys):
    judge = ["--judge", "my_rewards:vowels", "--judge-prompts", "prompts.txt"]
    assert main(ppo("--name", "judged", *judge, steps=2)) == 0
    capsys.readouterr()
    assert main(["lm", "ppo", "--resume", "judged", "--reward", "my_rewards:vowels"]) == 64
    assert "the run was started with --judge my_rewards:vowels; pass it again" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said", "code"),
    [
        (["lm", "ppo"], "--model is missing", 64),
        (
            ["lm", "ppo", "--model", "tiny", "--prompts", "prompts.txt", "--reward", "nowhere:f"],
            "cannot import nowhere",
            64,
        ),
        (
            ["lm", "ppo", "--model", "gone", "--prompts", "prompts.txt", "--reward", "my_rewards:vowels"],
            "no causal language model at gone",
            2,
        ),
        (ppo("--set", "kl=k3"), "no optimum", 2),
        (ppo("--set", "kl_coef=0.1"), "would count twice", 2),
        (ppo("--set", "colour=red"), "no setting is called 'colour'", 2),
        (["lm", "get", "gpt9"], "no packaged model", 2),
        (["lm", "constitution", "run", "no.yaml"], "cannot read no.yaml", 2),
        (["lm", "reward", "--model", "tiny", "--pairs", "prompts.txt", "--out", "r"], "prompts.txt:1", 2),
    ],
)
def test_what_cannot_work_is_one_sentence(place, capsys, words, said, code):
    assert main(words) == code
    shown = capsys.readouterr().err
    assert said in shown
    assert "Traceback" not in shown


def test_a_reward_model_is_fitted_and_used(place, capsys):
    rows = [{"prompt": f"say {i}", "chosen": "sun is good", "rejected": "sun is evil"} for i in range(12)]
    Path("pairs.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    assert (
        main(
            [
                "lm",
                "reward",
                "--model",
                "tiny",
                "--pairs",
                "pairs.jsonl",
                "--out",
                "judge",
                "--set",
                "epochs=3",
                "--json",
            ]
        )
        == 0
    )
    assert json.loads(capsys.readouterr().out)["pairs"] == 11
    assert main(ppo("--name", "judged", steps=1, reward="judge")) == 0


def test_fine_tuning_makes_the_responses_likelier(place, capsys):
    rows = [{"prompt": f"say {w}", "response": "yes sir"} for w in ("a", "b", "c", "d", "e", "f")]
    Path("rows.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    words = ["lm", "sft", "--model", "tiny", "--data", "rows.jsonl", "-o", "tuned", "--epochs", "4", "--lr", "1e-2"]
    assert main([*words, "--set", "dtype=float32", "--set", "targets=all"]) == 0
    shown = [float(line.split()[2]) for line in capsys.readouterr().out.splitlines() if line.startswith("epoch")]
    assert shown[-1] < shown[0]
    assert Path("tuned/config.json").is_file()


def test_the_constitutional_pipeline_goes_on_stage_by_stage(place, capsys):
    Path("own.yaml").write_text("principles: {calm: {description: should not shout, weight: 1.0, signs: ['[V-Z]']}}\n")
    Path("held.txt").write_text("so\nwell\nand then\n")
    config = {
        "model": "tiny",
        "prompts": "prompts.txt",
        "held_out": "held.txt",
        "principles": "own.yaml",
        "tokens": 10,
        "batch": 2,
        "responses": 3,
        "sft_epochs": 1,
        "reward_epochs": 2,
        "ppo_steps": 2,
        "ppo": {"prompts": 2},
        "dtype": "float32",
    }
    Path("cai.yaml").write_text(json.dumps(config))
    assert main(["lm", "constitution", "run", "cai.yaml", "--only", "revise"]) == 0
    assert json.loads(Path("cai/stages.json").read_text()) == ["revise"]
    assert main(["lm", "constitution", "run", "cai.yaml", "--only", "ppo"]) == 2
    assert "needs sft, which is not done yet" in capsys.readouterr().err
    rows = Path("cai/revisions.jsonl").read_text()
    assert main(["lm", "constitution", "run", "cai.yaml"]) == 0
    assert "held-out prompts, win rate" in capsys.readouterr().out
    assert Path("cai/revisions.jsonl").read_text() == rows
    made = json.loads(Path("cai/evaluate.json").read_text())
    assert made["prompts"] == 3
    assert 0 <= made["violation_rate_after"] <= 1
    assert main(["lm", "constitution", "run", "cai.yaml", "--json"]) == 0, "a second run has nothing to do"
    Path("dpo.yaml").write_text(json.dumps({**config, "algorithm": "dpo", "ppo_steps": 1}))
    assert main(["lm", "constitution", "run", "dpo.yaml"]) == 0
    assert json.loads(Path("dpo/stages.json").read_text()) == ["revise", "sft", "preferences", "dpo", "evaluate"]


def test_principles_can_be_shown_and_a_text_checked(place, capsys):
    assert main(["lm", "constitution", "show"]) == 0
    assert "harm_prevention (2)" in capsys.readouterr().out
    assert main(["lm", "constitution", "check", "You have no choice.", "--principles", "rules"]) == 1
    assert capsys.readouterr().out.strip() == "autonomy_respect"
