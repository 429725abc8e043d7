"""Fine-tuning learns responses, never prompts or padding."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from lm_helpers import VOCABULARY, char_tokenizer, tiny

from surefoot.errors import DataError
from surefoot.lm.policy.backbone import Backbone
from surefoot.lm.policy.loading import Speech
from surefoot.lm.sft import finetune, nll

ROWS = [(f"say {c}", "yes") for c in "abcdefgh"]


def test_only_response_tokens_are_counted_and_by_the_models_own_softmax():
    backbone = Backbone(tiny(vocabulary=VOCABULARY))
    pairs = [(np.array([3, 4, 5]), np.array([6, 7])), (np.array([8]), np.array([9, 10, 11]))]
    with torch.no_grad():
        found = nll(backbone, pairs).tolist()
        expected = []
        for prompt, response in pairs:
            ids = torch.from_numpy(np.concatenate([prompt, response]))[None]
            log_p = backbone.model(ids).logits[0].log_softmax(-1)
            expected += [-float(log_p[len(prompt) - 1 + t, token]) for t, token in enumerate(response)]
    assert found == pytest.approx(expected, abs=1e-4)


def test_responses_become_likelier_and_the_best_epoch_is_kept():
    backbone = Backbone(tiny(vocabulary=VOCABULARY), targets="all")
    fit = finetune(backbone, ROWS, Speech(char_tokenizer()), epochs=6, lr=1e-2, validation=0.25)
    assert fit.losses[-1] < 0.5 * fit.losses[0]
    assert fit.val_losses[fit.best_epoch] == min(fit.val_losses)
    assert fit.rows == 8


def test_rows_that_do_not_fit_are_counted_and_none_at_all_is_an_error():
    backbone = Backbone(tiny(vocabulary=VOCABULARY))
    long = ("x" * 70, "yes")
    assert finetune(backbone, [*ROWS, long], Speech(char_tokenizer()), epochs=1).skipped == 1
    with pytest.raises(DataError, match="none of 1 demonstrations fits"):
        finetune(backbone, [long], Speech(char_tokenizer()), epochs=1)
