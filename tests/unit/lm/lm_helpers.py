"""What the tests of language models share: tiny models, a tokenizer of characters, responses as a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from surefoot.core.batch import Batch
from surefoot.lm.config import LMConfig
from surefoot.lm.policy.backbone import Backbone
from surefoot.lm.training import LMTraining

EOS = 0


def tiny(family: str = "gpt2", *, seed: int = 0, vocabulary: int = 50, width: int = 32, layers: int = 2) -> Any:
    """A model whose logits are not all alike: fresh ones are nearly uniform."""
    from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    if family == "gpt2":
        model = GPT2LMHeadModel(
            GPT2Config(
                vocab_size=vocabulary,
                n_embd=width,
                n_layer=layers,
                n_head=2,
                n_positions=64,
                bos_token_id=0,
                eos_token_id=0,
            )
        )
    else:
        model = LlamaForCausalLM(
            LlamaConfig(
                vocab_size=vocabulary,
                hidden_size=width,
                intermediate_size=2 * width,
                num_hidden_layers=layers,
                num_attention_heads=4,
                num_key_value_heads=2,
                max_position_embeddings=64,
                tie_word_embeddings=True,
                bos_token_id=0,
                eos_token_id=0,
            )
        )
    with torch.no_grad():
        for p in model.parameters():
            if p.ndim > 1:
                p.mul_(6.0)
    return model


CHARS = "abcdefghijklmnopqrstuvwxyz .,!?'ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:-\n"


def char_tokenizer(*, pad: bool = False, chat: bool = False) -> Any:
    """One token a character; <eos> is 0."""
    from tokenizers import Regex, Tokenizer, decoders
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Split
    from transformers import PreTrainedTokenizerFast

    vocabulary = {"<eos>": 0, "<unk>": 1, **{c: i + 2 for i, c in enumerate(CHARS)}}
    inner = Tokenizer(WordLevel(vocabulary, unk_token="<unk>"))
    inner.pre_tokenizer = Split(Regex(r"[\s\S]"), behavior="isolated")
    inner.decoder = decoders.Fuse()
    made = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<eos>", unk_token="<unk>")
    if pad:
        made.pad_token = "<eos>"
    if chat:
        made.chat_template = (
            "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
            "{% if add_generation_prompt %}assistant: {% endif %}"
        )
    return made


VOCABULARY = len(CHARS) + 2


def prompts_of(count: int, *, vocabulary: int = 50, seed: int = 1) -> list[np.ndarray]:
    """Prompts of 1 to 12 tokens."""
    rng = np.random.default_rng(seed)
    return [rng.integers(1, vocabulary, size=rng.integers(1, 13)).astype(np.int64) for _ in range(count)]


def batch_of(responses: list[Any], *, advantage: float = 1.0, extra: int = 2) -> Batch:
    """Responses as the learner lays them out, padded by `extra` steps more than needed."""
    steps, n = max(len(r.tokens) for r in responses) + extra, len(responses)
    longest = max(len(r.prompt) for r in responses)
    action = torch.zeros(steps, n, dtype=torch.int64)
    log_prob, value = torch.zeros(steps, n), torch.zeros(steps, n)
    valid = torch.zeros(steps, n, dtype=torch.bool)
    prompt = torch.zeros(n, longest, dtype=torch.int64)
    obs = {}
    if responses[0].support:
        obs["support"] = torch.full((steps, n, len(responses[0].support[0])), 255, dtype=torch.uint8)
    for i, r in enumerate(responses):
        t = len(r.tokens)
        action[:t, i], valid[:t, i] = torch.tensor(r.tokens), True
        log_prob[:t, i], value[:t, i] = torch.tensor(r.log_prob), torch.tensor(r.value)
        prompt[i, : len(r.prompt)] = torch.from_numpy(r.prompt)
        if obs:
            obs["support"][:t, i] = torch.from_numpy(np.stack(r.support))
    return Batch(
        obs=obs,
        action=action,
        log_prob=log_prob,
        value=value,
        advantage=torch.full((steps, n), advantage),
        target=torch.zeros(steps, n),
        valid=valid,
        context={"prompt": prompt, "prompt_length": torch.tensor([len(r.prompt) for r in responses])},
    )


PROMPTS = ["hello", "what is", "go on then"]


def letters(prompt, response):
    return sum(c in "abcdefghijklm" for c in response) / max(1, len(response))


def training(reward=letters, prompts=PROMPTS, *, lr=3e-3, chat=False, pad=False, judge=None, ppo=None, **how):
    """A run over the tiny model that is paid for letters of the first half of the alphabet."""
    config = LMConfig(**{"max_new_tokens": 6, "prompts": 4, "steps": 4, **how})
    backbone = Backbone(tiny(vocabulary=VOCABULARY), train=config.train, top=config.top)
    return LMTraining(
        backbone,
        char_tokenizer(chat=chat, pad=pad),
        prompts,
        reward,
        config,
        ppo=config.ppo(lr=lr, epochs=2, **(ppo or {})),
        judge=judge,
        judge_prompts=PROMPTS if judge else (),
    )


def tiny_encoder(folder):
    """Write a random two-layer BERT with characters as tokens, and return its folder."""
    import transformers

    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=VOCABULARY + 2,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=128,
    )
    transformers.BertModel(config).save_pretrained(folder)
    char_tokenizer(pad=True).save_pretrained(folder)
    return folder
