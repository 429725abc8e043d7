"""Tests of `surefoot.decide.prompts.text`."""

from __future__ import annotations

from surefoot.decide.prompts.text import ended, leading_verb, list_items, sentences, tokens, without_politeness


def test_tokens_are_words_and_punctuation_marks():
    assert tokens("Sort it, please!") == 5
    assert tokens("") == 0


def test_a_list_item_is_one_sentence():
    text = "Do this. Then that.\n- one. two\n2) three"
    assert sentences(text) == ["Do this.", "Then that.", "- one. two", "2) three"]
    assert list_items(text) == ["one. two", "three"]


def test_the_leading_verb_is_found_behind_politeness():
    assert leading_verb("Could you write a poem?") == ("write", "create")
    assert leading_verb("Poems are nice.") is None
    assert without_politeness("Please, fix it") == "fix it"


def test_a_full_stop_is_added_only_if_punctuation_is_missing():
    assert [ended(text) for text in ("a", "a?", "", "a ")] == ["a.", "a?", "", "a."]
