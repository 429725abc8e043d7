"""Tests of `surefoot.decide.prompts.examples`."""

from __future__ import annotations

from surefoot.decide.prompts.examples import Examples, split_examples
from surefoot.decide.prompts.tasks import TaskRow
from surefoot.decide.prompts.text import tokens

SUMS = [TaskRow(prompt=f"What is {a} + {b}?", answer=str(a + b)) for a, b in ((1, 2), (30, 4), (5, 600), (7, 8))]
OTHER = TaskRow(prompt="Translate into French: good morning", answer="bonjour")


def test_examples_are_of_the_same_kind_and_never_the_prompt_itself():
    examples = Examples([*SUMS, OTHER])
    found = [row for _, row in examples.nearest(SUMS[0].prompt)]
    assert set(found) == set(SUMS[1:])
    assert examples.nearest("Tell me a story about a whale.") == []


def test_the_prompt_stands_whole_below_its_examples_which_fit_the_room():
    examples, prompt = Examples(SUMS), SUMS[0].prompt
    text = examples.before(prompt, prompt, 100)
    assert text.endswith(f"Now answer this one in the same way:\n\n{prompt}\n\nAnswer:")
    assert [row.prompt in text for row in SUMS] == [True] * 4
    assert text.count("Answer: 3\n") == 0, "its own answer is not shown"
    for room in (0, 10, 30, 50):
        assert tokens(examples.before(prompt, prompt, room)) - tokens(prompt) <= room
    assert examples.before(prompt, prompt, 0) == prompt


def test_examples_and_prompt_are_told_apart():
    prompt = SUMS[0].prompt
    text = Examples(SUMS).before(prompt, prompt, 100)
    head, body = split_examples(text)
    assert head + body == text
    assert body == f"{prompt}\n\nAnswer:"
    assert split_examples(prompt) == ("", prompt)


def test_rows_whose_answer_is_a_pattern_are_no_examples():
    assert Examples([TaskRow(prompt="What is 1 + 1?", answer="^2$", check="regex")]).rows == []
    assert Examples().nearest("What is 1 + 1?") == []
