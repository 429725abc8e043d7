"""Names of options in earlier systems mean the same as the current ones."""

from __future__ import annotations

import pytest

from surefoot.cli.aliases import _table, current_names, verb_name
from surefoot.cli.catalogue import VERBS
from surefoot.cli.main import read_arguments


@pytest.mark.parametrize(
    ("verb", "old", "new"),
    [
        ("train", ["E", "--doctor"], ["E", "--doctor", "full"]),
        ("train", ["E", "--doctor", "--name", "n"], ["E", "--doctor", "full", "--name", "n"]),
        ("train", ["E", "--doctor", "off"], ["E", "--doctor", "off"]),
        ("train", ["E", "--tensorboard"], ["E", "--track", "tensorboard"]),
        ("resume", ["R", "--verify"], ["R", "--verify", "6"]),
        ("resume", ["R", "--verify", "4"], ["R", "--verify", "4"]),
        ("town train", ["S", "--ppo-clip-param", "0.1"], ["S", "--set", "clip=0.1"]),
        ("town train", ["S", "--ppo_clip_param", "0.1"], ["S", "--set", "clip=0.1"]),
        ("town train", ["S", "--replay-shuffle"], ["S", "--set", "replay_shuffle=true"]),
        ("telemetry watch", ["R", "--loss-threshold", "5"], ["R", "--rule", "loss>5"]),
    ],
)
def test_an_earlier_name_becomes_the_current_one(verb: str, old: list[str], new: list[str]) -> None:
    assert current_names(verb, old) == new


def test_a_value_with_spaces_stays_one_argument() -> None:
    rule = "queue_conflict_events<25 when data_mode=rollout,mixed"
    assert current_names("telemetry watch", ["R", "--queue-events-min", "25"]) == ["R", "--rule", rule]


def test_every_template_leads_to_options_that_the_verb_has() -> None:
    positional = {verb: [] for verb in ("serve", "town samples")}
    for verb, entries in _table()["aliases"].items():
        assert verb in VERBS
        for option, template in entries.items():
            value = [] if " " in template and "{}" not in template else ["1"]
            for text in (value, ["off"], ["local"], ["auto"], []):  # options take numbers, words or nothing
                try:
                    assert read_arguments(verb, [*positional.get(verb, ["X"]), option, *text])
                    break
                except SystemExit:
                    continue
            else:
                pytest.fail(f"surefoot {verb} {option}: {template!r} is not understood")


def test_telemetry_view_is_report() -> None:
    assert verb_name("telemetry view") == "report"
    assert verb_name("eval") == "eval"
