"""A judge of readability, fitted to sentences and damaged copies of them, so that gibberish cannot pass for an answer."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from surefoot.errors import DataError
from surefoot.lm.data import PreferencePair
from surefoot.lm.rewards.text_features import TextFeatures
from surefoot.lm.rewards.text_reward import PairsFit, TextReward

# Share of undamaged texts that the threshold lets pass.
PASS = 0.95


def damaged(text: str, rng: random.Random) -> str:
    """Return a copy with the faults of ruined language models: words shuffled, repeated, cut out, or letters replaced."""
    words = text.split()
    size = max(2, len(words) // 2)
    begin = rng.randrange(max(1, len(words) - size + 1))
    part = words[begin : begin + size]
    kind = rng.choice(("shuffle", "repeat", "loop", "letters", "foreign"))
    if kind == "shuffle":
        rng.shuffle(part)
    elif kind == "repeat":
        part = [word for word in part for _ in range(rng.choice((1, 2, 3)))]
    elif kind == "loop":
        part = part[:2] * (size // 2 + 1)
    elif kind == "letters":
        part = ["".join(rng.sample(word, len(word))) if len(word) > 3 else word for word in part]
    else:
        part = [word if rng.random() < 0.5 else rng.choice(words) for word in part]
    return " ".join([*words[:begin], *part, *words[begin + size :]])


class Readable:
    """Whether a text reads like the texts it was built from, by a sentence encoder.

    Args:
        texts: Undamaged texts, such as sentences or answers of a base model; at least 40.
        model: The encoder.
        seed: Seed of the damages.
    """

    def __init__(self, texts: Sequence[str], *, model: str | Path = "minilm", seed: int = 0) -> None:
        usable = [text for text in texts if len(text.split()) >= 4]
        if len(usable) < 40:
            raise DataError(f"{len(usable)} texts of four words or more are too few to learn readability from; give 40")
        rng = random.Random(seed)
        pairs = [PreferencePair("", text, copy) for text in usable if (copy := damaged(text, rng)) != text]
        self.reward = TextReward(TextFeatures(model))
        self.fit: PairsFit = self.reward.fit(pairs, seed=seed)
        self.least = float(np.quantile(self.reward.score([""] * len(usable), usable), 1.0 - PASS))

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Return [n] booleans. Texts of less than three words are not readable."""
        scores = np.asarray(self.reward.score([""] * len(texts), list(texts)))
        return (scores >= self.least) & np.array([len(text.split()) >= 3 for text in texts])
