"""Comparing two models: win rate, ties, blind choices of a person."""

from __future__ import annotations

import numpy as np
import pytest
from lm_helpers import VOCABULARY, char_tokenizer, tiny

from surefoot.errors import ConfigError
from surefoot.lm.evaluation import answers, by_judge, by_person, win_rate, write_page
from surefoot.lm.rewards.rewards import RewardInputs, as_rewards


def side(*responses):
    ids = [np.array([1])] * len(responses)
    return RewardInputs([f"p{i}" for i in range(len(responses))], list(responses), ids, ids)


ONE, OTHER = side("a", "bb", "c", "same"), side("aa", "b", "d", "same")


def test_the_judge_decides_and_equal_scores_are_ties():
    wins = by_judge(as_rewards(lambda prompt, response: len(response), kind="judge"), ONE, OTHER)
    assert wins == [1, 0, None, None]
    result = win_rate(wins)
    assert (result["first"], result["second"], result["ties"], result["win_rate"]) == (1, 1, 2, 0.5)
    assert result["interval"] == pytest.approx((0.0945, 0.9055), abs=1e-3)  # Wilson, 1 of 2


def test_a_score_that_is_no_number_is_a_tie():
    assert by_judge(as_rewards(lambda prompt, response: float("nan")), ONE, OTHER) == [None] * 4


def test_a_person_chooses_blindly_and_the_choice_is_put_back_in_order():
    shown = []

    def longer(prompt, one, other):
        shown.append((one, other))
        return None if len(one) == len(other) else int(len(other) > len(one))

    assert by_person(longer, ONE, OTHER, seed=3) == [1, 0, None, None]
    assert len(shown) == 3  # equal answers are not asked about
    orders = {by == (a, b) for by, a, b in zip(shown, ONE.responses, OTHER.responses, strict=False)}
    assert orders == {True, False}


def test_a_page_shows_both_and_escapes_them(tmp_path):
    wins = [1, 0, None, None]
    path = write_page(tmp_path / "p.html", ("base", "<b>"), (ONE, OTHER), wins, win_rate(wins))
    text = path.read_text()
    assert "&lt;b&gt; wins 50%" in text
    assert "<td>bb</td>" in text


def test_a_model_answers_every_prompt_with_the_same_random_numbers(tmp_path):
    tiny(vocabulary=VOCABULARY).save_pretrained(tmp_path / "m")
    char_tokenizer().save_pretrained(tmp_path / "m")
    how = {"tokens": 5, "temperature": 1.0, "seed": 0}
    first, numbers = answers(str(tmp_path / "m"), None, ["hello", "you"], **how)
    assert first.responses == answers(str(tmp_path / "m"), None, ["hello", "you"], **how)[0].responses
    assert numbers["reference_nll"] > 0
    with pytest.raises(ConfigError, match="prompt 2 has 100 tokens"):
        answers(str(tmp_path / "m"), None, ["hello", "a" * 100], **how)
