"""The verbs and their groups: the overview fits on a screen, and arguments do not multiply."""

from __future__ import annotations

import dataclasses

import pytest

from surefoot.cli.catalogue import GROUPS, VERBS, listing, nearest, overview

COMMON = 3
"""--runs, --threads and --json, which every verb accepts."""


def test_the_overview_has_every_group_and_every_verb_on_one_screen() -> None:
    lines = overview().splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100
    text = " ".join(overview().replace("{", " ").replace("}", " ").replace(",", " ").split())
    for group in GROUPS.values():
        assert f"{group.title}:" in text
    assert all(word in text.split() for verb in VERBS for word in verb.split())


def test_all_verbs_together_have_at_most_350_arguments() -> None:
    counts = {name: len(dataclasses.fields(verb.load())) for name, verb in VERBS.items()}
    assert COMMON + sum(counts.values()) <= 350, counts


def test_every_argument_is_described() -> None:
    import inspect
    import re
    import typing

    for name, verb in VERBS.items():
        owner = verb.load()
        hints, source = typing.get_type_hints(owner, include_extras=True), inspect.getsource(owner)
        for field in dataclasses.fields(owner):
            shared = any(getattr(mark, "help", None) for mark in getattr(hints[field.name], "__metadata__", ()))
            # A declaration may go on over indented lines and a closing bracket.
            below = re.search(rf'^    {field.name}: .*\n(?:(?:        |    \]).*\n)*    """', source, re.MULTILINE)
            assert shared or below, f"surefoot {name}: {field.name} has no description"


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_line_is_an_imperative_sentence_without_a_period(verb: str) -> None:
    text = VERBS[verb].help
    assert text[0].isupper()
    assert not text.endswith(".")
    assert len(f"  surefoot {verb:<20} {text}") <= 105


def test_the_class_of_every_verb_starts_with_one_complete_line() -> None:
    for name, verb in VERBS.items():
        first, _, rest = verb.load().__doc__.partition("\n")
        assert first.rstrip().endswith((".", "…")), f"surefoot {name}: {first!r} does not end on its line"
        assert not rest.startswith("    ") or not rest.split("\n", 1)[0].strip(), name


def test_a_listing_is_a_group_or_a_first_word_or_nothing() -> None:
    tools, prompts = listing("tools"), listing("prompts")
    assert tools is not None
    assert prompts is not None
    assert "surefoot serve" in tools
    assert "surefoot serve" not in prompts
    assert listing("lm") == listing("language")
    assert listing("train") is not None
    assert listing("zzz") is None


@pytest.mark.parametrize(
    ("words", "verb"),
    [("trian", "train"), ("graph chekc", "graph check"), ("film", "town film"), ("qqqq", None), ("lm cht", "lm chat")],
)
def test_the_nearest_verb_is_found_by_its_words_or_by_its_last_word(words: str, verb: str | None) -> None:
    assert nearest(words) == verb
