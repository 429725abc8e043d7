"""Tests of `surefoot.decide.encoders.static`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from surefoot.decide.encoders import static
from surefoot.decide.encoders.encoder import make_encoder
from surefoot.errors import EncoderError


def test_an_unknown_encoder_is_named_and_auto_reports_its_fallback(tmp_path: Path, monkeypatch):
    with pytest.raises(EncoderError, match="unknown encoder 'bert'"):
        make_encoder("bert")
    monkeypatch.setenv("SUREFOOT_CACHE", str(tmp_path))
    monkeypatch.setattr(static, "find_spec", lambda name: None)
    messages: list[str] = []
    assert make_encoder("auto", say=messages.append).name.startswith("hashing")
    assert "hashing encoder" in messages[0]
    assert "surefoot[embed]" in messages[0]


def test_auto_builds_the_table_once_in_the_background_and_hashes_until_then(tmp_path: Path, monkeypatch):
    started: list[list[str]] = []
    monkeypatch.setenv("SUREFOOT_CACHE", str(tmp_path))
    monkeypatch.setattr(static, "find_spec", lambda name: name)
    monkeypatch.setattr(static.subprocess, "Popen", lambda command, **options: started.append(command))
    messages: list[str] = []
    for _ in range(2):
        assert make_encoder("auto", say=messages.append).name.startswith("hashing")
    assert [command[-2:] for command in started] == [["tools", "encoder"]], "the second one waits for the first"
    assert "being built" in messages[1]
    make_encoder("auto")
    assert len(started) == 1, "without a callback no process is started"


def test_a_static_table_is_read_from_a_path(tmp_path: Path):
    model2vec = pytest.importorskip("model2vec")
    tokenizers = pytest.importorskip("tokenizers")
    words = {"[UNK]": 0, "rain": 1, "sun": 2, "song": 3}
    pieces = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    pieces.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    table = np.random.default_rng(0).normal(size=(4, static.DIM)).astype(np.float32)
    model2vec.StaticModel(vectors=table, tokenizer=pieces, config={}).save_pretrained(str(tmp_path / "table"))
    encoder = static.StaticEncoder.open(path=tmp_path / "table")
    rows = encoder.encode(["rain sun", "song"])
    both = table[1] + table[2]
    assert rows[0] == pytest.approx(both / np.linalg.norm(both), abs=1e-5), "a text is the mean of its pieces"
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1.0, 1.0])
    for text, row in zip(
        ["rain sun", "song", "nothing known", ""], encoder.encode(["rain sun", "song", "what", ""]), strict=True
    ):
        assert encoder.encode([text])[0] == pytest.approx(row, abs=1e-6), "one text alone is encoded as among others"
