"""`surefoot VERB --help` before its options: read in a terminal of any width, examples to be copied."""

from __future__ import annotations

import io
import re
import shlex
import sys

import pytest

from surefoot.cli.helptext import described
from surefoot.cli.main import VERBS, main, read_arguments


class Verb:
    """Says what it does in a sentence that is longer than a narrow terminal is wide.

        surefoot verb --with a-rather-long-option --and another
        surefoot verb

    Then it goes on, as well:
        surefoot verb --last

    surefoot verb --not "set in, and rather long for that"
    """


def test_paragraphs_are_filled_and_examples_stay_as_they_are(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "40")
    assert described(Verb).split("\n") == [
        "Says what it does in a sentence that is",
        "longer than a narrow terminal is wide.",
        "",
        "    surefoot verb --with a-rather-long-option --and another",
        "    surefoot verb",
        "",
        "Then it goes on, as well:",
        "",
        "    surefoot verb --last",
        "",
        '    surefoot verb --not "set in, and rather long for that"',
        "",
        "Common options: --runs DIR is the",
        "directory of runs (default",
        "$SUREFOOT_RUNS or ./runs); --threads N",
        "those of torch (1).",
    ]


@pytest.mark.parametrize("columns", [60, 200])
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_described_within_the_terminal(
    verb: str, columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main([*verb.split(), "--help"]) == 0
    usage, _, rest = capsys.readouterr().out.partition("\n\n")
    about = rest.partition("─ ")[0].rpartition("\n")[0]
    assert usage.startswith(f"usage: surefoot {verb}")
    assert about.strip()
    told = [line for line in about.splitlines() if not line.startswith(" ")]
    assert max(map(len, told)) <= min(columns, 100)
    assert not any(line.startswith("surefoot ") for line in told), "an example is set in"


def test_a_terminal_that_knows_only_ascii_is_told_as_well(monkeypatch: pytest.MonkeyPatch):
    kept = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(kept, encoding="ascii", write_through=True))
    assert main(["tune", "--help"]) == 0
    assert b"runs/Pendulum-v1-tune-?/best.yaml" in kept.getvalue()


ALONE = {"include", "tools encoder"}
"""Verbs that take nothing, and whose name says it all."""


def examples(verb: str) -> list[str]:
    """The commands of a verb's help, without what is said beside them and where their output goes."""
    text = described(VERBS[verb].load())
    lines = [line.strip() for line in text.splitlines() if line.startswith(" ")]
    return [re.split(r"\s{2,}| [>|] ", line)[0] for line in lines if line.startswith("surefoot ")]


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in ALONE])
def test_every_verb_has_examples_that_can_be_typed(verb: str):
    found = examples(verb)
    assert found
    for words in map(shlex.split, found):
        name = " ".join(words[1:3]) if " ".join(words[1:3]) in VERBS else words[1]
        assert read_arguments(name, words[1 + len(name.split()) :])


@pytest.mark.parametrize("verb", VERBS)
def test_no_placeholder_and_no_default_of_an_option_is_pythons_none(
    verb: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("COLUMNS", "200")
    main([*verb.split(), "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert not re.search(r"None|\(default: (False|True)?\)|\[STR", text)
