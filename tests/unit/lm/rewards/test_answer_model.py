"""Tests of `surefoot.lm.rewards.answer_model`."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from lm_helpers import VOCABULARY, char_tokenizer, tiny

from surefoot.errors import ConfigError
from surefoot.lm.rewards.answer_model import TOKENS_PER_PASS, AnswerModel, batches


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "tiny"
    tiny(vocabulary=VOCABULARY).save_pretrained(path)
    char_tokenizer().save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def model(folder):
    return AnswerModel(folder, max_new_tokens=3)


def test_log_likelihoods_are_those_of_transformers_one_row_at_a_time(model):
    prompts, answers = ["ab", "what is it", "go"], ["yes", "no", "maybe so"]
    computed = model.log_likelihood(prompts, answers)
    for prompt, answer, value in zip(prompts, answers, computed, strict=True):
        asked, given = model.speech.prompt(prompt), model.speech.continuation(answer)
        ids = torch.from_numpy(np.concatenate([asked, given]))[None]
        with torch.no_grad():
            chances = model.backbone.model(ids).logits.float().log_softmax(-1)[0]
        expected = [float(chances[len(asked) + i - 1, token]) for i, token in enumerate(given)]
        assert value == pytest.approx(np.mean(expected), abs=2e-2 if model.backbone.dtype != torch.float32 else 1e-4)


def test_a_reply_does_not_depend_on_the_other_prompts_of_its_batch(model):
    together = model.reply(["ab", "what is it"])
    assert together == [model.reply([prompt])[0] for prompt in ("ab", "what is it")]


def test_a_prompt_beyond_the_context_is_refused(model):
    with pytest.raises(ConfigError, match="tokens; lm:"):
        model.log_likelihood(["a" * 100_000], ["b"])


def test_batches_hold_every_row_once_and_stay_within_their_size():
    sizes = [5, 900, 40, 40, 2000, 3000, 7]
    found = list(batches(sizes))
    assert sorted(i for batch in found for i in batch) == list(range(len(sizes)))
    for batch in found:
        assert len(batch) == 1 or len(batch) * max(sizes[i] for i in batch) <= TOKENS_PER_PASS
