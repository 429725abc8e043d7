"""Measures prompts with a causal language model: log-likelihoods of given answers in batched passes, and replies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch

from surefoot.errors import ConfigError
from surefoot.lm.config import LMConfig
from surefoot.lm.policy.loading import Speech, load_backbone

# Tokens per pass: on a CPU larger batches are not faster, and padding costs more.
TOKENS_PER_PASS = 2048


class AnswerModel:
    """A causal language model as the judge of prompts: how probable is the right answer after the prompt?

    Args:
        model: A folder, a hub name, or a name that `surefoot lm get` knows.
        max_new_tokens: Length of a reply.
    """

    likelihoods = True

    def __init__(self, model: str | Path, *, max_new_tokens: int = 64) -> None:
        self.name, self.max_new_tokens = f"lm:{model}", max_new_tokens
        self.backbone, tokenizer = load_backbone(model, LMConfig(train="none"))
        self.speech = Speech(tokenizer, self.backbone.model)

    @torch.no_grad()
    def log_likelihood(self, prompts: Sequence[str], answers: Sequence[str]) -> np.ndarray:
        """Return the mean log-probability per token of each answer and its end token, [N]."""
        asked = [self.speech.prompt(prompt) for prompt in prompts]
        answered = [self.speech.continuation(answer) for answer in answers]
        sizes = [len(a) + len(b) for a, b in zip(asked, answered, strict=True)]
        self._check(max(sizes, default=0))
        result = np.zeros(len(sizes))
        for batch in batches(sizes):
            ids = torch.zeros(len(batch), max(sizes[i] for i in batch), dtype=torch.int64)
            for row, i in zip(ids, batch, strict=True):
                row[: sizes[i]] = torch.from_numpy(np.concatenate([asked[i], answered[i]]))
            # Attention is causal: what stands to the right of a row's end changes nothing in it.
            states = self.backbone.hidden(ids.to(self.backbone.device))
            for row, i in zip(states, batch, strict=True):
                # The state before a token predicts it. Only these positions need the vocabulary.
                logits = self.backbone.head(row[len(asked[i]) - 1 : sizes[i] - 1]).float()
                target = torch.from_numpy(answered[i]).to(logits.device)
                result[i] = float(logits.log_softmax(-1).gather(-1, target[:, None]).mean())
        return result

    @torch.no_grad()
    def reply(self, prompts: Sequence[str]) -> list[str]:
        """Return the most probable continuation of each prompt, by greedy decoding."""
        asked = [self.speech.prompt(prompt) for prompt in prompts]
        sizes = [len(ids) for ids in asked]
        self._check(max(sizes, default=0) + self.max_new_tokens)
        replies = [""] * len(asked)
        for batch in batches([size + self.max_new_tokens for size in sizes]):
            width = max(sizes[i] for i in batch)
            ids, mask = (torch.zeros(len(batch), width, dtype=torch.int64) for _ in range(2))
            for row, i in enumerate(batch):
                # On the left: new tokens are appended on the right.
                ids[row, width - sizes[i] :] = torch.from_numpy(asked[i])
                mask[row, width - sizes[i] :] = 1
            out = self.backbone.model.generate(
                input_ids=ids.to(self.backbone.device),
                attention_mask=mask.to(self.backbone.device),
                max_new_tokens=self.max_new_tokens,
                do_sample=False,
                eos_token_id=self.speech.eos,
                pad_token_id=self.speech.eos[0],
            )
            for row, i in enumerate(batch):
                replies[i] = self.speech.text(out[row, width:].tolist()).strip()
        return replies

    def _check(self, size: int) -> None:
        limit = self.backbone.context_length
        if limit is not None and size > limit:
            raise ConfigError(f"a prompt and its answer have {size} tokens; {self.name} takes {limit}")


def batches(sizes: Sequence[int]) -> Iterator[list[int]]:
    """Return indices in batches of similar sizes, each of at most `TOKENS_PER_PASS` tokens with padding."""
    batch: list[int] = []
    for i in sorted(range(len(sizes)), key=lambda i: sizes[i]):
        if batch and sizes[i] * (len(batch) + 1) > TOKENS_PER_PASS:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch
