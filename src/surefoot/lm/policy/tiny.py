"""A tiny random model for trials and tests: two layers, characters as tokens."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from surefoot.lm.policy.loading import require_transformers

LETTERS = ("<eos>", "<unk>", *(chr(i) for i in range(32, 127)), "\n")


def tiny_tokenizer() -> Any:
    """Return a tokenizer with one token per character; token 0 ends a text."""
    transformers = require_transformers()
    tokenizers: Any = import_module("tokenizers")
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel({c: i for i, c in enumerate(LETTERS)}, unk_token="<unk>"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Split(tokenizers.Regex(r"[\s\S]"), behavior="isolated")
    inner.decoder = tokenizers.decoders.Fuse()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<eos>", unk_token="<unk>")


def make_tiny(folder: Path | str, *, width: int = 64, layers: int = 2, seed: int = 0) -> Path:
    """Write a folder that `from_pretrained` loads, and return it. The model can learn a simple reward in a minute."""
    transformers = require_transformers()
    generator_state = torch.get_rng_state()
    torch.manual_seed(seed)
    shape = transformers.GPT2Config(
        vocab_size=len(LETTERS), n_embd=width, n_layer=layers, n_head=4, n_positions=512, bos_token_id=0, eos_token_id=0
    )
    model = transformers.GPT2LMHeadModel(shape)
    with torch.no_grad():
        # Fresh embeddings are so small that adapters alone could not make any token likely.
        model.get_input_embeddings().weight.mul_(6.0)
    torch.set_rng_state(generator_state)
    model.save_pretrained(str(folder))
    tiny_tokenizer().save_pretrained(str(folder))
    return Path(folder)
