"""Numbers that describe a response: states of a sentence encoder, words, and a few counts. Reward models are linear in them."""

from __future__ import annotations

import itertools
import math
import re
import zlib
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from surefoot.errors import ConfigError
from surefoot.lm.data import Talk, messages_of
from surefoot.lm.policy.loading import require_transformers, resolve
from surefoot.lm.rewards.fluency import is_refusal

# Buckets of hashed words and pairs of words: 2,000 preference pairs have 20,000 different ones, half of them once.
BUCKETS = 2**15
# The share of the counts beside the encoder's states, which are divided by the root of their number.
COUNTS_SCALE = 0.1
# Tokens of a response that are read; encoders such as MiniLM were trained on 128.
MAX_TOKENS = 256
_WORD = re.compile(r"[^\W_]+(?:'[a-z]+)?")


@dataclass(frozen=True, slots=True)
class Features:
    """Features of n responses."""

    dense: Tensor
    """[n, D]: the encoder's states, then the counts."""
    words: Tensor
    """[n, W] int64: buckets of words, padded with `BUCKETS`."""
    weights: Tensor
    """[n, W]: 1 + log of how often each occurs; 0 for padding."""

    def __getitem__(self, rows: Tensor) -> Features:
        return Features(self.dense[rows], self.words[rows], self.weights[rows])


@dataclass(frozen=True, slots=True)
class FeatureScale:
    """Scaling of features, fitted without looking at preferences."""

    mean: Tensor
    factor: Tensor
    idf: Tensor

    @classmethod
    def fit(cls, features: Features, counts: int) -> FeatureScale:
        mean, std = features.dense.mean(0), features.dense.std(0, correction=0)
        width = features.dense.shape[1]
        share = torch.full((width,), 1.0 / math.sqrt(width - counts))
        share[width - counts :] = COUNTS_SCALE
        n = len(features.words)
        known = torch.bincount(features.words.flatten(), minlength=BUCKETS + 1)[:BUCKETS].float()
        idf = torch.log((1.0 + n) / (1.0 + known)) + 1.0
        # A word that occurs once predicts nothing about other texts.
        idf[known < 2] = 0.0
        factor = torch.where(std > 1e-6, share / std.clamp(min=1e-6), torch.zeros_like(std))
        return cls(mean, factor, torch.cat([idf, torch.zeros(1)]))

    def apply(self, features: Features) -> tuple[Tensor, Tensor, Tensor]:
        """Return (dense [n, D], buckets [n, W], their weights [n, W] with unit norm)."""
        weights = features.weights * self.idf[features.words]
        norm = weights.norm(dim=1, keepdim=True).clamp(min=1e-6)
        return (features.dense - self.mean) * self.factor, features.words, weights / norm


def hashed_words(text: str) -> dict[int, float]:
    """Return {bucket: 1 + log count} of the words and the pairs of words in a text."""
    words = _WORD.findall(text.lower())
    counts: dict[int, int] = {}
    for gram in (*words, *(f"{a} {b}" for a, b in itertools.pairwise(words))):
        # crc32, because Python's own hash of a string differs from process to process.
        bucket = zlib.crc32(gram.encode()) % BUCKETS
        counts[bucket] = counts.get(bucket, 0) + 1
    return {bucket: 1.0 + math.log(count) for bucket, count in counts.items()}


def bags_of_words(texts: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Return (buckets, weights), [n, W] each, as in `Features`."""
    bags = [hashed_words(text) for text in texts]
    longest = max(1, max(map(len, bags), default=1))
    words = torch.full((len(bags), longest), BUCKETS, dtype=torch.int64)
    weights = torch.zeros(len(bags), longest)
    for row, bag in enumerate(bags):
        words[row, : len(bag)] = torch.tensor(list(bag), dtype=torch.int64)
        weights[row, : len(bag)] = torch.tensor(list(bag.values()))
    return words, weights


def counts_of(text: str) -> list[float]:
    """Return counts that a bag of words loses: length, variety, questions, numbers, lines, refusals."""
    words = _WORD.findall(text.lower())
    size = max(1, len(words))
    return [
        math.log1p(len(words)),
        # Divided, so that it is of the same order as the other counts.
        len(words) / 50.0,
        len(set(words)) / size,
        sum(map(len, words)) / size,
        text.count(",") / size,
        float("?" in text),
        float(text.rstrip().endswith("?")),
        float(any(c.isdigit() for c in text)),
        float("\n" in text.strip()),
        float(text.lstrip()[:2] in ("I ", "I'")),
        float(is_refusal(text)),
    ]


@contextmanager
def _loading(model: str | Path, kind: str, example: str) -> Generator[tuple[Any, Any]]:
    """Give transformers and the folder of a model, without notices; a model that cannot be loaded is one sentence."""
    transformers = require_transformers()
    folder = resolve(model)
    notices, level = transformers.utils.logging, transformers.utils.logging.get_verbosity()
    notices.set_verbosity_error()
    try:
        yield transformers, folder
    except (OSError, ValueError) as why:
        first = str(why).strip().splitlines()[0] if str(why).strip() else type(why).__name__
        raise ConfigError(f"no {kind} at {model}: {first}; `surefoot lm get {example}` downloads one") from why
    finally:
        notices.set_verbosity(level)


class LanguageModelStates:
    """Computes states of a causal language model for texts: what it knows about a claim is most linear in its middle layers.

    A sentence encoder is trained to place texts by their subject; a language model also has to tell a likely statement from an
    unlikely one. Of each layer the mean over the tokens and the state of the last token are returned.

    Args:
        model: A directory, a hub name, or smollm2.
        device: Where the model runs.
    """

    def __init__(self, model: str | Path, *, device: str | torch.device = "cpu") -> None:
        self.model_name, self.device = str(model), torch.device(device)
        # Weights of the layers above, which are not read, would be listed one by one.
        with _loading(model, "language model", "smollm2") as (transformers, folder):
            self.tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)
            config: Any = transformers.AutoConfig.from_pretrained(folder)
            depth = int(config.num_hidden_layers)
            # 16 and 20 of SmolLM2's 30 layers, by cross-validation on labelled answers.
            self.layers = tuple(sorted({max(1, depth * 8 // 15), max(1, depth * 2 // 3)}))
            # Nothing reads the upper layers. One more than needed, because the last one's states are normalised.
            if self.layers[-1] + 1 < depth and not getattr(config, "layer_types", None):
                config.num_hidden_layers = self.layers[-1] + 1
            # float32: the same states on a machine with bfloat16 and on one without.
            loaded = transformers.AutoModel.from_pretrained(folder, config=config, dtype=torch.float32)
        self.model: Any = loaded.to(self.device).eval()
        self.hidden_size = int(config.hidden_size)

    @torch.no_grad()
    def __call__(self, texts: Sequence[str], *, rows: int = 16) -> Tensor:
        """Return [n, 2 layers, width]: per layer the mean over the tokens, then the state of the last one."""
        states = torch.zeros(len(texts), 2 * len(self.layers), self.hidden_size)
        # A line break comes first: attention gathers on the first token, whose state is the same for every text.
        ids = [self.tokenizer("\n" + text, truncation=True, max_length=MAX_TOKENS)["input_ids"] for text in texts]
        order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
        for begin in range(0, len(order), rows):
            part = order[begin : begin + rows]
            longest = max(len(ids[i]) for i in part)
            batch = torch.zeros(len(part), longest, dtype=torch.int64)
            mask = torch.zeros(len(part), longest, dtype=torch.int64)
            for row, i in enumerate(part):
                batch[row, : len(ids[i])] = torch.tensor(ids[i])
                mask[row, : len(ids[i])] = 1
            output = self.model(
                input_ids=batch.to(self.device),
                attention_mask=mask.to(self.device),
                output_hidden_states=True,
                use_cache=False,
            )
            last = mask.sum(1) - 1
            of_text = mask.clone()
            of_text[:, 0] = (last == 0).long()
            of_text = of_text.unsqueeze(-1).float()
            for place, layer in enumerate(self.layers):
                hidden = output.hidden_states[layer].float().cpu()
                states[torch.tensor(part), 2 * place] = (hidden * of_text).sum(1) / of_text.sum(1)
                states[torch.tensor(part), 2 * place + 1] = hidden[torch.arange(len(part)), last]
        return states


class TextFeatures:
    """Computes the features of responses with a frozen encoder.

    The encoder's states are averaged over the tokens of the response, in the second half of its layers but the last: the last
    one is trained for similarity and has forgotten most of the rest (on hh-rlhf pairs 0.62 against 0.64 for each of the
    three below it). The similarity to the last message of the conversation is one number.

    Args:
        model: A directory, a hub name, or minilm.
        device: Where the encoder runs.
    """

    def __init__(self, model: str | Path, *, device: str | torch.device = "cpu") -> None:
        self.model_name, self.device = str(model), torch.device(device)
        # Buffers that a newer release no longer has are reported as a table.
        with _loading(model, "encoder", "minilm") as (transformers, folder):
            self.tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)
            self.encoder: Any = transformers.AutoModel.from_pretrained(folder).to(self.device).eval()
        depth = int(self.encoder.config.num_hidden_layers)
        self.layers = tuple(range(max(1, depth // 2), max(2, depth)))
        if self.tokenizer.pad_token is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token
        positions = getattr(self.encoder.config, "max_position_embeddings", None) or MAX_TOKENS
        self.max_tokens = min(MAX_TOKENS, int(positions))

    @property
    def width(self) -> int:
        """Return the number of dense features."""
        return len(self.layers) * int(self.encoder.config.hidden_size) + len(counts_of("")) + 1

    @torch.no_grad()
    def __call__(self, prompts: Sequence[Talk], responses: Sequence[str]) -> Features:
        """Return the features of one response per prompt."""
        questions = [messages_of(prompt)[-1]["content"] if prompt else "" for prompt in prompts]
        unique = list(dict.fromkeys(questions))
        asked = dict(zip(unique, self.states(unique, last_only=True), strict=True))
        states = self.states(responses)
        last, middle = states[:, -1], states[:, :-1].flatten(1)
        similarity = torch.cosine_similarity(last, torch.stack([asked[q][0] for q in questions]), dim=1)
        counts = torch.tensor([counts_of(text) for text in responses])
        dense = torch.cat([middle, counts, similarity.unsqueeze(1)], 1)
        return Features(dense, *bags_of_words(responses))

    @torch.no_grad()
    def similarity(self, one: Sequence[str], other: Sequence[str]) -> list[float]:
        """Return the cosines of texts with texts."""
        a, b = (self.states(side, last_only=True)[:, 0] for side in (one, other))
        return torch.cosine_similarity(a, b, dim=1).tolist()

    def states(self, texts: Sequence[str], *, last_only: bool = False, peaks: bool = False, rows: int = 32) -> Tensor:
        """Return the mean states of some layers, [n, layers + 1, width]; the last layer comes last.

        With `peaks` the highest states of the tokens follow, [n, 2 layers + 2, width].
        """
        layers = (-1,) if last_only else (*self.layers, -1)
        width = int(self.encoder.config.hidden_size)
        states = torch.zeros(len(texts), len(layers) * (2 if peaks else 1), width)
        # Texts of similar length in one batch, so that little is padded.
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        for begin in range(0, len(order), rows):
            part = order[begin : begin + rows]
            # An empty text has no token in some tokenizers; a space is not nothing.
            batch = self.tokenizer(
                [texts[i] or " . " for i in part],
                padding=True,
                truncation=True,
                max_length=self.max_tokens,
                return_tensors="pt",
            ).to(self.device)
            hidden = self.encoder(**batch, output_hidden_states=True).hidden_states
            mask = batch["attention_mask"].unsqueeze(-1).float()
            for place, layer in enumerate(layers):
                mean = (hidden[layer].float() * mask).sum(1) / mask.sum(1)
                states[torch.tensor(part), place] = mean.cpu()
                if peaks:
                    highest = hidden[layer].float().masked_fill(mask == 0, -torch.inf).amax(1)
                    states[torch.tensor(part), len(layers) + place] = highest.cpu()
        return states
