"""Earlier names of options: they mean the same as the current ones, and renamed ones print a notice."""

from __future__ import annotations

import pytest

from surefoot.cli.aliases import _table, current_names, verb_name
from surefoot.cli.catalogue import VERBS
from surefoot.cli.main import main, read_arguments


@pytest.mark.parametrize(
    ("verb", "old", "new", "noticed"),
    [
        ("train", ["E", "--minibatches", "0.5"], ["E", "--set", "record_minibatches=0.5"], True),
        ("train", ["E", "--minibatches=0.5"], ["E", "--set", "record_minibatches=0.5"], True),
        ("train", ["E", "--eval-every", "0"], ["E", "--set", "eval_every=0"], False),
        ("train", ["E", "--overlap"], ["E", "--set", "overlap=true"], False),
        ("train", ["E", "--no-doctor"], ["E", "--doctor", "off"], True),
        ("train", ["E", "--act"], ["E", "--doctor", "act"], True),
        ("train", ["E", "--doctor"], ["E", "--doctor", "full"], False),
        ("train", ["E", "--doctor", "--name", "n"], ["E", "--doctor", "full", "--name", "n"], False),
        ("train", ["E", "--doctor", "off"], ["E", "--doctor", "off"], False),
        ("train", ["E", "--tensorboard"], ["E", "--track", "tensorboard"], False),
        ("resume", ["R", "--verify"], ["R", "--verify", "6"], False),
        ("resume", ["R", "--verify", "4"], ["R", "--verify", "4"], False),
        ("tune", ["E", "--rungs", "2"], ["E", "--search", "rungs=2"], True),
        ("town train", ["S", "--ppo-clip-param", "0.1"], ["S", "--set", "clip=0.1"], False),
        ("town train", ["S", "--ppo_clip_param", "0.1"], ["S", "--set", "clip=0.1"], False),
        ("town train", ["S", "--replay-shuffle"], ["S", "--set", "replay_shuffle=true"], False),
        ("telemetry watch", ["R", "--loss-threshold", "5"], ["R", "--rule", "loss>5"], False),
        ("graph render", ["G", "--svg", "-o", "x"], ["G", "-o", "x"], True),
    ],
)
def test_an_earlier_name_becomes_the_current_one(verb: str, old: list[str], new: list[str], noticed: bool) -> None:
    argv, notices = current_names(verb, old)
    assert argv == new
    assert bool(notices) == noticed


def test_a_value_with_spaces_stays_one_argument() -> None:
    rule = "queue_conflict_events<25 when data_mode=rollout,mixed"
    assert current_names("telemetry watch", ["R", "--queue-events-min", "25"])[0] == ["R", "--rule", rule]


def test_every_template_leads_to_options_that_the_verb_has() -> None:
    table = _table()
    positional = {"tune": ["E"], "clone": ["D", "--env", "E"], "lm sft": ["--model", "m", "--data", "d", "--out", "o"]}
    positional |= {"lm reward": ["--model", "m", "--pairs", "d", "--out", "o"], "prompts train": ["--prompts", "p"]}
    positional |= {"prompts rlaif": ["--prompts", "p"], "lm eval": ["a", "b", "--prompts", "p"]}
    positional |= {verb: [] for verb in ("serve", "town samples", "lm ppo")}
    for section in ("aliases", "renamed"):
        for verb, entries in table[section].items():
            assert verb in VERBS
            for option, template in entries.items():
                value = [] if " " in template and "{}" not in template else ["1"]
                value = value if template else []
                for text in (value, ["off"], ["local"], ["auto"], []):  # options take numbers, words or nothing
                    try:
                        assert read_arguments(verb, [*positional.get(verb, ["X"]), option, *text])
                        break
                    except SystemExit:
                        continue
                else:
                    pytest.fail(f"surefoot {verb} {option}: {template!r} is not understood")


def test_a_renamed_option_prints_one_line_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "CartPole-v1", "--backend", "surefoot", "--dry-run"]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("surefoot train: --backend is now --env-backend")


def test_telemetry_view_is_report() -> None:
    assert verb_name("telemetry view") == "report"
    assert verb_name("eval") == "eval"
