"""The tiny model: one token per character, the same for a seed."""

from __future__ import annotations

import torch
from safetensors.torch import load_file

from surefoot.lm.policy.tiny import make_tiny, tiny_tokenizer


def test_every_character_is_one_token_and_comes_back():
    tokenizer = tiny_tokenizer()
    ids = tokenizer("Hi, you!\n")["input_ids"]
    assert len(ids) == 9
    assert tokenizer.decode(ids) == "Hi, you!\n"


def test_the_weights_follow_from_the_seed_and_other_random_numbers_are_untouched(tmp_path):
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    folders = [make_tiny(tmp_path / str(i), width=8, layers=1, seed=seed) for i, seed in enumerate((1, 1, 2))]
    assert torch.equal(torch.rand(1), expected)
    one, same, other = (load_file(folder / "model.safetensors")["transformer.wte.weight"] for folder in folders)
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
