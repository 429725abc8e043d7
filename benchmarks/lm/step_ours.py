"""PPO steps of surefoot on random weights; prints CPU-seconds a step and peak memory as JSON."""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import common
import torch
from optimum import Numbers

SIZES = {"gpt2": (12, 768, 12, 50257), "tiny": (4, 128, 4, 1000)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="tiny")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--train", default="lora")
    parser.add_argument("--top", type=int)
    parser.add_argument("--prompts", type=int, default=8)
    parser.add_argument("--prompt-tokens", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--steps", type=int, default=3)
    args = parser.parse_args()
    from transformers import GPT2Config, GPT2LMHeadModel

    from surefoot.lm.config import LMConfig
    from surefoot.lm.models import backbone_of
    from surefoot.lm.reward_model import BackboneReward
    from surefoot.lm.training import LMTraining

    torch.set_num_threads(1)
    torch.manual_seed(0)
    layers, width, heads, vocabulary = SIZES[args.size]
    shape = GPT2Config(
        n_layer=layers,
        n_embd=width,
        n_head=heads,
        vocab_size=vocabulary,
        n_positions=1024,
        bos_token_id=0,
        eos_token_id=0,
    )
    model = GPT2LMHeadModel(shape).to(torch.float32 if args.dtype == "float32" else torch.bfloat16)
    # As in the peer's workload nothing ends before its time, so that both write the same number of tokens.
    how: dict[str, Any] = {
        "max_new_tokens": args.tokens,
        "steps": args.steps,
        "prompts": args.prompts,
        "top": args.top,
        "train": args.train,
    }
    config = LMConfig(**how)
    backbone = backbone_of(model, config)
    words = Numbers()
    rows = torch.randint(1, vocabulary, (64, args.prompt_tokens), generator=torch.Generator().manual_seed(1)).tolist()
    training = LMTraining(backbone, words, [" ".join(map(str, row)) for row in rows], BackboneReward(backbone), config)
    training.speech.eos = [vocabulary + 1]
    times, parts = [], []
    for _ in range(args.steps):
        began = time.process_time()
        parts.append(training.step().seconds)
        times.append(time.process_time() - began)
    print(json.dumps({"cpu_seconds": times, "seconds": parts, "peak_mb": common.peak_mb(), "ratio_error": 0}))


if __name__ == "__main__":
    main()
