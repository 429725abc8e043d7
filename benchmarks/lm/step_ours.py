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
    parser.add_argument("--dtype", default="auto", help="auto: bfloat16 where this CPU computes in it")
    parser.add_argument("--train", default="lora")
    parser.add_argument("--top", type=int)
    parser.add_argument("--prompts", type=int, default=8)
    parser.add_argument("--prompt-tokens", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--learn-rows", type=int, help="responses learned from at one time; all if unset")
    args = parser.parse_args()
    from transformers import GPT2Config, GPT2LMHeadModel

    from surefoot.lm.config import LMConfig
    from surefoot.lm.policy.loading import backbone_of, best_dtype
    from surefoot.lm.rewards.reward_model import BackboneReward
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
    dtype = best_dtype(args.dtype, torch.device("cpu"))
    model = GPT2LMHeadModel(shape).to(dtype)
    # As in the peer's workload nothing ends before its time, so that both write the same number of tokens.
    how: dict[str, Any] = {
        "max_new_tokens": args.tokens,
        "steps": args.steps,
        "prompts": args.prompts,
        "top": args.top,
        "train": args.train,
        "learn_rows": args.learn_rows,
    }
    config = LMConfig(**how)
    backbone = backbone_of(model, config)
    words = Numbers()
    rows = torch.randint(1, vocabulary, (64, args.prompt_tokens), generator=torch.Generator().manual_seed(1)).tolist()
    training = LMTraining(backbone, words, [" ".join(map(str, row)) for row in rows], BackboneReward(backbone), config)
    training.speech.eos = [vocabulary + 1]
    times, parts, errors = [], [], []
    for _ in range(args.steps):
        began = time.process_time()
        step = training.step()
        times.append(time.process_time() - began)
        parts.append(step.seconds)
        errors.append(step.report.first_ratio_error)
    said = {"cpu_seconds": times, "seconds": parts, "ratio_error": errors, "dtype": str(dtype)}
    print(json.dumps(said | {"peak_mb": common.peak_mb()}))


if __name__ == "__main__":
    main()
