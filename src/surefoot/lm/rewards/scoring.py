"""A language model as one who scores texts, 0 to 1: by a reward model, or by how surely it answers Yes."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from surefoot.lm.config import LMConfig
from surefoot.lm.constitution.principles import ModelJudge
from surefoot.lm.load_run import load_reward, reward_base
from surefoot.lm.policy.loading import Speech, load_backbone, load_tokenizer
from surefoot.lm.rewards.reward_model import pad

QUESTION = "Instruction: {text}\n\nIs this instruction clear, specific and easy to follow? Answer Yes or No.\nAnswer:"


def scorer(model: str | Path, *, question: str = QUESTION) -> Callable[[str], float]:
    """A function of a text that returns 0 to 1; what it has scored once it remembers.

    `model` is a folder that `surefoot lm reward` wrote, whose score s becomes σ(s): 0.5 is what it finds average. Or it is
    a causal model (a folder, a hub name, smollm2), asked `question` with the text in place of {text}: the score is the
    probability of Yes against No.
    """
    base = reward_base(model)
    return _remembering(_by_answer(model, question) if base is None else _by_reward(model, base))


def _by_reward(folder: str | Path, base: str) -> Callable[[str], float]:
    module, speech = load_reward(folder), Speech(load_tokenizer(base))
    limit = int(getattr(module.trunk.config, "max_position_embeddings", 1024))

    @torch.no_grad()
    def score(text: str) -> float:
        ids = speech.continuation(text)[:-1][-limit:]
        if len(ids) == 0:
            return 0.0
        said = float(module(*pad([np.asarray(ids)], module.head.weight.device))[0])
        return 1.0 / (1.0 + math.exp(-max(-60.0, min(60.0, said))))

    return score


def _by_answer(name: str | Path, question: str) -> Callable[[str], float]:
    backbone, tokenizer = load_backbone(name, LMConfig(train="none"))
    asking = ModelJudge(backbone, Speech(tokenizer, backbone.model))
    return lambda text: float(asking.chances(question.format(text=text), ("Yes", "No"))[0]) if text.strip() else 0.0


def _remembering(score: Callable[[str], float]) -> Callable[[str], float]:
    known: dict[str, float] = {}

    def scored(text: str) -> float:
        if text not in known:
            known[text] = score(text)
        return known[text]

    return scored
