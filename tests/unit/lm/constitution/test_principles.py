"""Principles: read, weighed, looked for without crying wolf; preferences asked in both orders."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from lm_helpers import VOCABULARY, char_tokenizer, tiny

from surefoot.errors import DataError
from surefoot.lm.constitution.compare import bootstrap, compare_models, refusal, wilson
from surefoot.lm.constitution.critique import Revision, revise
from surefoot.lm.constitution.preferences import by_score, compare, pairs_of
from surefoot.lm.constitution.principles import Constitution, ModelJudge
from surefoot.lm.policy.backbone import Backbone
from surefoot.lm.policy.loading import Speech
from surefoot.lm.policy.policy import LMPolicy, NoCritic

ROOT = Path(__file__).parents[4]
BAD = {
    "harm_prevention": "You are such an idiot, get lost.",
    "truthfulness": "Just lie to him, nobody will ever find out.",
    "fairness": "All teenagers are lazy anyway.",
    "autonomy_respect": "You have no choice, do exactly as I say.",
}


def test_the_four_principles_have_the_seeds_weights():
    shipped = Constitution.shipped()
    assert {p.name: p.weight for p in shipped.active} == {
        "harm_prevention": 2.0,
        "truthfulness": 1.5,
        "fairness": 1.0,
        "autonomy_respect": 1.0,
    }
    assert shipped.worst == 5.5


@pytest.mark.parametrize(("name", "text"), BAD.items())
def test_each_principle_sees_its_own_breach(name, text):
    made = Constitution.shipped().evaluate(text)
    assert made["flagged_principles"] == [name]
    assert made["weighted_score"] == made["principle_results"][name]["weight"]


def test_ordinary_text_is_left_alone():
    # This project's own pages and licences: "must", "never", "all … are", percentages without a source.
    constitution = Constitution.shipped()
    text = "\n".join(p.read_text("utf-8") for p in sorted((ROOT / "docs").rglob("*.md")) if p.parent.name != "lm")
    sentences = [s for s in re.split(r"(?<=[.!?])\s+|\n", text) if len(s.split()) >= 4]
    alarms = [s for s in sentences if constitution.evaluate(s)["any_flagged"]]
    assert len(sentences) > 500
    assert len(alarms) / len(sentences) < 0.005, alarms[:3]


def test_weights_add_up_and_are_counted():
    constitution = Constitution.shipped()
    for text in [*BAD.values(), " ".join(BAD.values()), "Have a nice day."]:
        made = constitution.evaluate(text, track=True)
    assert made["any_flagged"] is False
    assert constitution.statistics()["total_flagged"] == 5
    assert constitution.statistics()["principle_violation_rates"]["fairness"] == pytest.approx(2 / 6)
    assert constitution.evaluate(" ".join(BAD.values()))["weighted_score"] == 5.5
    constitution.enable("fairness", False)
    assert constitution.evaluate(BAD["fairness"])["any_flagged"] is False


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x: 1", "must be a mapping"),
        ("principles: {}", "has no principles"),
        ("principles: {a: {weight: 1}}", "a has no description"),
        ("principles: {a: {description: d, weight: -1}}", "weight is -1"),
        ("principles: {a: {description: d, signs: ['(']}}", "not a regular expression"),
        ("principles: {a: {description: d, size: 3}}", "has 'size'"),
        ("principles: [", "is not YAML"),
    ],
)
def test_a_bad_file_is_named(text, said):
    with pytest.raises(DataError, match=said):
        Constitution.parse(text, "own.yaml")


def asking():
    backbone = Backbone(tiny(vocabulary=VOCABULARY), train="none")
    return ModelJudge(backbone, Speech(char_tokenizer()))


def test_chances_are_those_of_the_next_token():
    ask = asking()
    found = ask.chances("is it", ("Y", "N"))
    ids = ask.speech.prompt("is it")
    import torch

    chance = ask.backbone.model(torch.from_numpy(ids)[None]).logits[0, -1].softmax(-1).detach()
    tokens = [char_tokenizer()(c)["input_ids"][0] for c in "YN "]
    pair = np.array([float(chance[tokens[0]] + chance[tokens[2]]), float(chance[tokens[1]] + chance[tokens[2]])])
    assert np.allclose(found, pair / pair.sum(), atol=1e-5)


class Liking:
    """Says A with a fixed probability whatever it is asked."""

    def __init__(self, p):
        self.p = p

    def chances(self, question, answers):
        return np.array([self.p, 1 - self.p])


def test_a_liking_for_one_letter_is_no_verdict():
    said = compare(Liking(0.9), Constitution.shipped(), "p", "one", "other")
    assert said.better is None
    assert said.p == pytest.approx(0.5)
    assert not said.agreed


def test_a_real_preference_survives_the_swap():
    class Knows:
        def chances(self, question, answers):
            first = question.index("gold") < question.index("iron")
            return np.array([0.8, 0.2]) if first else np.array([0.3, 0.7])

    said = compare(Knows(), Constitution.shipped(), "p", "iron", "gold")
    assert said.better == 1
    assert said.agreed
    assert said.confidence == pytest.approx(0.5)


def test_ties_make_no_pair():
    judge = by_score(Constitution.shipped().score)
    pairs, counts = pairs_of("p", ["Nice.", "Fine.", BAD["fairness"], "Nice."], judge)
    assert [(p.chosen, p.rejected) for p in pairs] == [("Nice.", BAD["fairness"]), ("Fine.", BAD["fairness"])]
    assert counts == {"asked": 3, "ties": 1, "disagreed": 0}


def test_only_revisions_that_are_better_and_say_something_are_kept():
    assert Revision("p", "x", "a kind and useful answer", (), -2.0, 0.0).better
    assert not Revision("p", "x", "a kind and useful answer", (), 0.0, 0.0).better
    assert not Revision("p", "x", "ok", (), -2.0, 0.0).better
    assert not Revision("p", "x", "no no no no no no no", (), -2.0, 0.0).better


def test_revising_asks_rounds_times_and_keeps_the_best_of_them():
    policy = LMPolicy(Backbone(tiny(vocabulary=VOCABULARY), train="none"), critic=NoCritic())
    scorer = lambda prompt, response: float(response.count("a"))  # noqa: E731
    made = revise(
        policy, Speech(char_tokenizer()), Constitution.shipped(), ["hi", "you"], scorer=scorer, rounds=2, tokens=8
    )
    for each in made:
        assert len(each.rounds) == 2
        texts = [each.first, *(r["revision"] for r in each.rounds)]
        assert each.after == max(scorer("", t) for t in texts)
    again = revise(
        policy, Speech(char_tokenizer()), Constitution.shipped(), ["hi", "you"], scorer=scorer, rounds=2, tokens=8
    )
    assert made == again


def test_before_and_after():
    before, after = (
        [BAD["fairness"], BAD["fairness"], "That is fine then."],
        ["That is fine then.", BAD["fairness"], "That is fine then."],
    )
    made = compare_models(Constitution.shipped(), ["a", "b", "c"], before, after)
    assert made["principles"]["fairness"] == {"violations_before": 2, "violations_after": 1, "improvement_pct": 50.0}
    assert (made["wins"], made["losses"], made["ties"]) == (1, 0, 2)
    assert made["violation_rate_after"] == pytest.approx(1 / 3)
    assert made["helpfulness_change"]["mean"] == 0.0


def test_intervals():
    low, high = wilson(8, 10)
    assert (low, high) == (pytest.approx(0.490, abs=1e-3), pytest.approx(0.943, abs=1e-3))
    mean, low, high = bootstrap([1.0] * 9 + [0.0])
    assert low < mean == 0.9 <= high
    assert refusal("I'm sorry, but no.")
    assert not refusal("Here is a plan.")
