"""Tests of `surefoot.decide.prompts.policy`."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.decide.prompts.examples import Examples
from surefoot.decide.prompts.mutations import ABOUT, STOP
from surefoot.decide.prompts.policy import CHANGES, FACTS, PromptConfig, PromptPolicy, facts, train, versions
from surefoot.decide.prompts.tasks import TaskRow
from surefoot.decide.prompts.text import tokens

CHOICES = [
    f"Which of these is {what}: {a}, {b} or {c}?"
    for what in ("heavy", "old", "red")
    for a, b, c in (("iron", "air", "wood"), ("wine", "milk", "tea"), ("sun", "sea", "sand"))
]
STORIES = [
    f"Write a {kind} about {what}." for kind in ("story", "poem", "report") for what in ("bees", "rain", "ships")
]


class LikesForms:
    """Gains 1 from an answer form in prompts with options, loses 1 from every other mutation."""

    evaluations = 0

    def score(self, prompts, originals):
        self.evaluations += len(prompts)
        return np.array([self._one(text, first) for text, first in zip(prompts, originals, strict=True)])

    def _one(self, text: str, original: str) -> float:
        form = "The answer is one of" in text
        return float(form) - float(tokens(text) - tokens(original) - 14 * form > 4)


@pytest.fixture(scope="module")
def trained() -> PromptPolicy:
    policy = PromptPolicy(PromptConfig(token_cost=0.0))
    train(policy, LikesForms(), CHOICES[:6] + STORIES[:6], 400)
    return policy


def test_a_trained_policy_mutates_what_gains_and_leaves_the_rest(trained: PromptPolicy):
    for prompt in CHOICES[6:]:
        assert [name for name, _ in trained.steps(prompt)][:1] == ["answer-form"]
    changed = sum(len(trained.steps(prompt)) for prompt in STORIES[6:])
    assert changed <= 1


def test_training_keeps_to_its_number_of_scores():
    scorer = LikesForms()
    curve = train(PromptPolicy(), scorer, CHOICES + STORIES, 57)
    assert scorer.evaluations <= 57
    assert curve[-1][0] == scorer.evaluations


def test_the_same_seed_gives_the_same_policy():
    steps = []
    for _ in range(2):
        policy = PromptPolicy(seed=3)
        train(policy, LikesForms(), CHOICES, 60)
        steps.append([policy.steps(prompt) for prompt in CHOICES + STORIES])
    assert steps[0] == steps[1]


def test_no_version_exceeds_the_cap_or_removes_words():
    prompt = "Please just really explain to me what tea is made of."
    assert "context-reduction" not in versions(prompt, prompt, PromptConfig())
    assert "context-reduction" in versions(prompt, prompt, PromptConfig(allow_cut=True))
    for cap in (0, 3, 12, 80):
        for text in versions(prompt, prompt, PromptConfig(max_tokens=cap)).values():
            assert tokens(text) - tokens(prompt) <= cap
    assert PromptPolicy(PromptConfig(max_tokens=0)).steps(prompt) == []


def test_facts_have_a_name_each_and_length_one_at_most():
    row = facts(CHOICES[0], ["answer-form"])
    assert row.shape == (len(FACTS),)
    assert row[FACTS.index("form_option")] > 0.0
    assert row[FACTS.index("did_answer-form")] > 0.0
    assert row[FACTS.index("did_role")] == 0.0


def test_every_action_is_described():
    assert tuple(ABOUT) == (*CHANGES, STOP)


def test_mutations_below_examples_see_the_prompt_and_not_the_examples():
    examples = Examples([TaskRow(prompt=CHOICES[1], answer="wine")])
    text = versions(CHOICES[0], CHOICES[0], PromptConfig(), examples)["examples"]
    assert text.index(CHOICES[1]) < text.index("Answer: wine") < text.index(CHOICES[0])
    more = versions(text, CHOICES[0], PromptConfig(), examples)
    assert "examples" not in more
    assert more["answer-form"].endswith("The answer is one of: iron, air, wood.\n\nAnswer:")
    assert more["answer-form"].startswith(text[: text.index(CHOICES[0])])
    assert "examples" not in versions(CHOICES[0], CHOICES[0], PromptConfig(max_tokens=10), examples)
    assert facts(text, ["examples"])[FACTS.index("long")] == 0.0


def test_the_policy_learns_whether_examples_help():
    class LikesExamples:
        def score(self, prompts, originals):
            return np.array([float("Answer: x" in text) for text in prompts])

    rows = [TaskRow(prompt=prompt, answer="x") for prompt in CHOICES]
    policy = PromptPolicy(PromptConfig(max_steps=1), examples=Examples(rows))
    train(policy, LikesExamples(), CHOICES + STORIES, 200)
    assert [name for name, _ in policy.steps(CHOICES[0])] == ["examples"]
