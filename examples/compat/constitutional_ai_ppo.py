"""PPO on a language model: 12 prompts, a plain function as the reward, minutes on a CPU.

python examples/compat/constitutional_ai_ppo.py [MODEL]      a folder or a hub name; without one a tiny random model is made
"""

from __future__ import annotations

import os
import sys

from transformers import AutoModelForCausalLM, AutoTokenizer

from surefoot.compat.constitutional_ai import PPOTrainer, ValueModel
from surefoot.lm.policy.tiny import make_tiny

PROMPTS = [
    "Tell me about rain.",
    "How are you?",
    "What do you like?",
    "Say something nice.",
    "Where is the sea?",
    "Why is the sky blue?",
    "Who are you?",
    "What is a tree?",
    "Tell me a story.",
    "What is your name?",
    "How does bread smell?",
    "What shall we do?",
]


def vowels(prompt: str, response: str) -> float:
    """Any function of prompt and response is a reward; a RewardModel would be one too."""
    return sum(c in "aeiou" for c in response) / max(1, len(response))


def main() -> None:
    steps = int(os.environ.get("SUREFOOT_EXAMPLE_STEPS", "8000")) // 200
    model = sys.argv[1] if len(sys.argv) > 1 else str(make_tiny("tiny-model"))
    policy, tokenizer = AutoModelForCausalLM.from_pretrained(model), AutoTokenizer.from_pretrained(model)
    trainer = PPOTrainer(
        policy_model=policy,
        value_model=ValueModel(policy, hidden_size=policy.config.hidden_size),
        reward_model=vowels,
        tokenizer=tokenizer,
        learning_rate=1e-5 if len(sys.argv) > 1 else 1e-3,
        kl_in="reward",
        kl_penalty=0.02,
    )
    results = trainer.train(PROMPTS, num_steps=steps, batch_size=8, max_length=48, checkpoint_dir="checkpoints")
    first = results["training_history"]["mean_rewards"][0]
    print(f"mean reward {first:.3f} in the first step, {results['final_avg_reward']:.3f} over the last ones")
    texts, _ = trainer.generate_responses(PROMPTS[:2], max_length=48)
    for prompt, text in zip(PROMPTS, texts, strict=False):
        print(f"{prompt!r} → {text!r}")


if __name__ == "__main__":
    main()
