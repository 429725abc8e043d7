"""A language benchmark that was stopped goes on from its last saved step and comes to the same."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from lm_helpers import VOCABULARY, char_tokenizer, tiny

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks" / "lm"))

import common

from surefoot.lm.config import LMConfig
from surefoot.lm.policy.backbone import Backbone
from surefoot.lm.training import LMTraining


def training():
    config = LMConfig(max_new_tokens=4, prompts=3, steps=4)
    return LMTraining(
        Backbone(tiny(vocabulary=VOCABULARY)),
        char_tokenizer(),
        ["a", "b"],
        lambda prompt, response: len(response),
        config,
    )


def test_stopped_after_three_steps_it_goes_on_from_the_second(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SUREFOOT_CACHE", str(tmp_path))
    whole = training()
    rows, earlier = common.go_on("whole", whole, lambda step: step.stats["score"], every=2)
    assert earlier == 0.0

    def stopping(step):
        if step.number == 3:
            raise KeyboardInterrupt
        return step.stats["score"]

    with pytest.raises(KeyboardInterrupt):
        common.go_on("part", training(), stopping, every=2)
    on = training()
    again, earlier = common.go_on("part", on, lambda step: step.stats["score"], every=2)
    assert again == rows
    assert earlier > 0.0
    assert all(torch.equal(x, whole.policy.state_dict()[n]) for n, x in on.policy.state_dict().items())
