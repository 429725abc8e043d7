"""Scores texts from 0 to 1 with a language model: by a reward model, or by the probability of the answer Yes."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import torch

from surefoot.lm.config import LMConfig
from surefoot.lm.constitution.principles import ModelJudge
from surefoot.lm.load_run import load_reward, reward_base
from surefoot.lm.policy.loading import Speech, load_backbone, load_tokenizer
from surefoot.lm.rewards.reward_model import pad
from surefoot.lm.rewards.text_reward import TextReward

QUESTION = "Instruction: {text}\n\nIs this instruction clear, specific and easy to follow? Answer Yes or No.\nAnswer:"


def scorer(model: str | Path, *, question: str = QUESTION) -> Callable[[str], float]:
    """Return a function from a text to a score between 0 and 1; scores are cached.

    Args:
        model: A folder that `surefoot lm reward` wrote, whose score s becomes σ(s), 0.5 for an average text. Or a causal
            model (a folder, a hub name, smollm2), which answers `question`: the score is P(Yes) / (P(Yes) + P(No)).
        question: The question to a causal model; {text} is replaced by the text.
    """
    base = reward_base(model)
    if base is not None:
        return cache(_by_reward(model, base))
    backbone, tokenizer = load_backbone(model, LMConfig(train="none"))
    judge = ModelJudge(backbone, Speech(tokenizer, backbone.model))

    def score(text: str) -> float:
        return float(judge.chances(question.format(text=text), ("Yes", "No"))[0]) if text.strip() else 0.0

    return cache(score)


def _by_reward(folder: str | Path, base: str) -> Callable[[str], float]:
    module = load_reward(folder)
    if isinstance(module, TextReward):
        return lambda text: 1.0 / (1.0 + math.exp(-module.score([""], [text])[0])) if text.strip() else 0.0
    speech = Speech(load_tokenizer(base))
    limit = int(getattr(module.trunk.config, "max_position_embeddings", 1024))

    @torch.no_grad()
    def score(text: str) -> float:
        ids = speech.continuation(text)[:-1][-limit:]
        if len(ids) == 0:
            return 0.0
        raw = float(module(*pad([np.asarray(ids)], module.head.weight.device))[0])
        return 1.0 / (1.0 + math.exp(-max(-60.0, min(60.0, raw))))  # beyond ±60, exp overflows or σ is 0 or 1 anyway

    return score
