from __future__ import annotations

import pytest

from surefoot.decide.prompts.constraints import CHECKS, Constraint, ConstraintScorer, readable, share_met
from surefoot.errors import ConfigError

CASES = {
    "keywords:existence": ({"keywords": ["tea", "cup"]}, "A cup of tea.", "A cup of coffee."),
    "keywords:frequency": ({"relation": "at least", "keyword": "tea", "frequency": 2}, "Tea and tea.", "Tea and team."),
    "keywords:forbidden_words": ({"forbidden_words": ["ice"]}, "Nice weather.", "Ice and snow."),
    "keywords:letter_frequency": (
        {"let_relation": "less than", "letter": "e", "let_frequency": 2},
        "The sun.",
        "The tree.",
    ),
    "length_constraints:number_words": ({"relation": "at least", "num_words": 3}, "One two three", "One two"),
    "length_constraints:number_sentences": (
        {"relation": "less than", "num_sentences": 3},
        "A b. C d.",
        "A b. C d. E f.",
    ),
    "length_constraints:number_paragraphs": ({"num_paragraphs": 2}, "one\n***\ntwo", "one\n\ntwo"),
    "length_constraints:nth_paragraph_first_word": (
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "then"},
        "First.\n\n“Then it was.",
        "First.\n\nNow it is.",
    ),
    "detectable_content:postscript": ({"postscript_marker": "P.S."}, "Bye.\np.s. one more", "Bye."),
    "detectable_content:number_placeholders": ({"num_placeholders": 2}, "[name] of [city]", "[name]"),
    "detectable_format:number_bullet_lists": ({"num_bullets": 2}, "* a\n- b", "* a"),
    "detectable_format:constrained_response": ({}, "My answer is no.", "No."),
    "detectable_format:number_highlighted_sections": ({"num_highlights": 2}, "*one* and *two*", "*one*"),
    "detectable_format:multiple_sections": (
        {"section_spliter": "Part", "num_sections": 2},
        "Part 1\na\nPart 2\nb",
        "Part 1",
    ),
    "detectable_format:json_format": ({}, '```json\n{"a": 1}\n```', "{a: 1}"),
    "detectable_format:title": ({}, "<<On tea>>\nText", "On tea\nText"),
    "combination:two_responses": ({}, "one ****** two", "one ****** one"),
    "combination:repeat_prompt": ({"prompt_to_repeat": "Say it."}, "Say it. It.", "It."),
    "startend:end_checker": ({"end_phrase": "The end."}, "So. The end.", "The end. Or not"),
    "startend:quotation": ({}, '"all of it"', '"all" of it'),
    "change_case:capital_word_frequency": (
        {"capital_relation": "at least", "capital_frequency": 2},
        "I say NO and NEVER",
        "I say NO",
    ),
    "change_case:english_capital": ({}, "ALL OF IT", "All of it"),
    "change_case:english_lowercase": ({}, "all of it", "All of it"),
    "punctuation:no_comma": ({}, "one and two", "one, two"),
}


@pytest.mark.parametrize("kind", sorted(CHECKS))
def test_each_kind_tells_a_response_that_meets_it_from_one_that_does_not(kind: str):
    given, good, bad = CASES[kind]
    constraint = Constraint(kind, given)
    assert constraint.met_by(good)
    assert not constraint.met_by(bad)
    assert not constraint.met_by("  ")


def test_a_row_of_a_data_set_is_read_and_what_code_cannot_check_is_left_out():
    found = readable(["punctuation:no_comma", "language:response_language"], [{}, {"language": "de"}])
    assert [c.kind for c in found] == ["punctuation:no_comma"]


def test_the_share_of_constraints_met_is_the_score_of_a_prompt():
    both = [Constraint("punctuation:no_comma", {}), Constraint("change_case:english_lowercase", {})]
    assert share_met("one and Two", both) == 0.5
    scorer = ConstraintScorer(lambda prompt: "small words" if "small" in prompt else "Big, words", {"Talk.": both})
    assert scorer.score(["Talk.", "Talk. Use small letters."], ["GENERAL_QA"] * 2).tolist() == [0.0, 1.0]
    scorer.remember("Talk.", "Speak small.")
    assert scorer.score(["Speak small."], ["GENERAL_QA"]).tolist() == [1.0]
    with pytest.raises(ConfigError, match="nothing is known of 'Sing.'"):
        scorer.score(["Sing."], ["GENERAL_QA"])


def test_an_unknown_kind_is_refused():
    with pytest.raises(ConfigError, match="there is no constraint 'rhyme'"):
        Constraint("rhyme", {})
