"""PPO steps of TRL 1.12 (trl.experimental.ppo) on random weights; prints CPU-seconds a step and peak memory as JSON.

Runs in the peer's own environment: python benchmarks/peers.py trl
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time

os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
SIZES = {"gpt2": (12, 768, 12, 50257), "tiny": (4, 128, 4, 1000)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="tiny")
    parser.add_argument(
        "--lora", action="store_true", help="its best use: LoRA on the policy, no model for the reference"
    )
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], help="as it is; with --lora, bfloat16")
    parser.add_argument("--prompts", type=int, default=8)
    parser.add_argument("--prompt-tokens", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--steps", type=int, default=3)
    args = parser.parse_args()
    import torch
    from datasets import Dataset
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import WhitespaceSplit
    from transformers import (
        GPT2Config,
        GPT2ForSequenceClassification,
        GPT2LMHeadModel,
        PreTrainedTokenizerFast,
        TrainerCallback,
    )
    from trl.experimental.ppo import PPOConfig, PPOTrainer

    torch.set_num_threads(1)
    torch.manual_seed(0)
    layers, width, heads, vocabulary = SIZES[args.size]
    shape = GPT2Config(
        n_layer=layers,
        n_embd=width,
        n_head=heads,
        vocab_size=vocabulary,
        n_positions=1024,
        num_labels=1,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
    )
    inner = Tokenizer(WordLevel({str(i): i for i in range(vocabulary)}, unk_token="0"))
    inner.pre_tokenizer = WhitespaceSplit()
    words = PreTrainedTokenizerFast(
        tokenizer_object=inner, eos_token="0", pad_token="0", unk_token="0", padding_side="left"
    )
    dtype = getattr(torch, args.dtype or ("bfloat16" if args.lora else "float32"))
    policy = GPT2LMHeadModel(shape).to(dtype)
    reference = None if args.lora else GPT2LMHeadModel(shape).to(dtype)
    value, reward = (GPT2ForSequenceClassification(shape).to(dtype) for _ in range(2))
    peft = None
    if args.lora:
        from peft import LoraConfig

        peft = LoraConfig(r=8, lora_alpha=16, task_type="CAUSAL_LM", fan_in_fan_out=True)
    rows = torch.randint(1, vocabulary, (64, args.prompt_tokens), generator=torch.Generator().manual_seed(1)).tolist()
    times: list[float] = []

    class Clock(TrainerCallback):
        last = 0.0

        def on_train_begin(self, *_: object, **__: object) -> None:
            Clock.last = time.process_time()

        def on_step_end(self, *_: object, **__: object) -> None:
            now = time.process_time()
            times.append(now - Clock.last)
            Clock.last = now

    with tempfile.TemporaryDirectory() as scratch:
        config = PPOConfig(
            output_dir=scratch, per_device_train_batch_size=args.prompts, gradient_accumulation_steps=1, num_mini_batches=1,
            num_ppo_epochs=4, total_episodes=args.prompts * args.steps, response_length=args.tokens, stop_token=None,
            temperature=1.0, num_sample_generations=0, report_to="none", save_strategy="no", logging_steps=1, use_cpu=True,
            bf16=False, gradient_checkpointing=False, learning_rate=1e-5,
        )  # fmt: skip
        trainer = PPOTrainer(
            config, words, model=policy, ref_model=reference, reward_model=reward, value_model=value,
            train_dataset=Dataset.from_dict({"input_ids": rows}), eval_dataset=Dataset.from_dict({"input_ids": rows[:8]}),
            peft_config=peft, callbacks=[Clock()],
        )  # fmt: skip
        trainer.train()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"cpu_seconds": times, "peak_mb": peak}))


if __name__ == "__main__":
    main()
