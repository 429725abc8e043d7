"""Tests of `surefoot.decide.encoders.encoder`."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from surefoot.decide.encoders.encoder import Cached, HashingEncoder, Scales, make_encoder


def test_vectors_have_length_one_and_an_empty_text_has_none():
    rows = HashingEncoder(64).encode(["how do I reset my PIN?", ""])
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1.0, 0.0])


def test_texts_that_share_words_are_nearer_than_those_that_do_not():
    a, b, c = HashingEncoder().encode(["lost my bank card", "bank card is lost", "exchange rates for euros"])
    assert a @ b > 0.5 > a @ c


def test_the_hashing_encoder_gives_the_same_numbers_in_another_process():
    # A fallback must not be seeded by Python's salted hash: other vectors in every run.
    code = "from surefoot.decide.encoders.encoder import HashingEncoder as H; print(H(16).encode(['hello world']).tolist())"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(result.stdout) == HashingEncoder(16).encode(["hello world"]).tolist()


def test_scales_keep_the_directions_that_vary_most():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 20)) * np.concatenate([np.full(4, 0.01), np.full(16, 1.0)])
    scales = Scales.fit(rows[:, ::1])
    centred = rows - scales.mean
    explained = ((centred @ scales.axes[:16].T) ** 2).sum() / (centred**2).sum()
    assert explained > 0.999, "the first 16 fitted directions hold nearly all of the variance"
    truncated = (rows[:, :16] ** 2).sum() / (rows**2).sum()
    assert truncated < 0.8, "truncation after 16 would not"
    assert np.linalg.norm(scales(rows, 8), axis=1) == pytest.approx(np.ones(300))


def test_the_standard_scales_of_an_encoder_are_always_the_same(encoder: HashingEncoder):
    assert np.array_equal(Scales.standard(encoder).axes, Scales.standard(HashingEncoder(64)).axes)
    assert Scales.standard(encoder)(encoder.encode(["x y z"]), 96).shape == (1, 64), "at most the encoder's dimension"


def test_a_cached_text_is_encoded_once():
    class Counting(HashingEncoder):
        encoded = 0

        def encode(self, texts):
            self.encoded += len(texts)
            return super().encode(texts)

    inner = Counting(16)
    cached = Cached(inner, size=2)
    first = cached.encode(["a", "b", "a"])
    assert np.array_equal(first[0], first[2])
    cached.encode(["a"])
    assert inner.encoded == 2
    cached.encode(["c"])
    cached.encode(["a"])
    assert inner.encoded == 4, "only the last two are remembered"


def test_the_saved_name_of_a_hashing_encoder_makes_the_same_encoder():
    assert make_encoder("hashing-1-32").name == HashingEncoder(32).name
    assert make_encoder("hashing").dim == 384
