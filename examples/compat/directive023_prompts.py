"""The command line of the earlier prompt system: learn which mutation makes a prompt better, or serve its eight endpoints.

python examples/compat/directive023_prompts.py                  20 episodes over five prompts, rewards from real mutations
python examples/compat/directive023_prompts.py --server 8765    the endpoints; see also `surefoot serve --compat directive-023`
"""

import os
import sys

from surefoot.__main__ import main as surefoot
from surefoot.decide.encoders.encoder import HashingEncoder
from surefoot.decide.prompts.lint import lint
from surefoot.decide.prompts.mutations import MUTATIONS, allowed, mutate
from surefoot.decide.prompts.text import tokens

STEPS = int(os.environ.get("SUREFOOT_EXAMPLE_STEPS", "4_000"))
TOKEN_COST = 0.002
PROMPTS = (
    "Write a Python function that merges two sorted lists, and test it with several edge cases",
    "Explain what a REST API is",
    "Create a slogan for a coffee brand",
    "Refactor the payment module; then add unit tests; finally update the documentation",
    "Could you please just write a really nice email to my landlord about the heating?",
)


def reward(prompt: str, mutation: str) -> tuple[float, str, bool]:
    """What a mutation gained, less what its tokens cost; the prompt after it; whether nothing is left to do."""
    possible = allowed(prompt)[MUTATIONS.index(mutation)]
    text = mutate(prompt, mutation).text if possible else prompt
    before, after = (lint(t).score for t in (prompt, text))
    return after - before - TOKEN_COST * (tokens(text) - tokens(prompt)), text, not allowed(text)[:-1].any()


def demo() -> int:
    import torch

    from surefoot.compat.directive023 import PPOConfig, PPOTrainer

    torch.set_num_threads(1)
    encoder = HashingEncoder(128)
    trainer = PPOTrainer(PPOConfig(input_dim=128, hidden_dim=64, batch_size=32, min_buffer_size=64, learning_rate=1e-3))
    for episode in range(max(1, STEPS // 200)):
        told = trainer.train_episode(PROMPTS * 10, lambda text: encoder.encode([text])[0], reward, max_steps=4)
        print(
            f"episode {episode + 1:3}  reward of a mutation {told['avg_reward']:+.4f}  best {told['max_reward']:+.3f}"
        )
    print(f"{trainer.get_stats()['total_updates']} updates")
    return 0


if __name__ == "__main__":
    if "--server" in sys.argv:
        port = sys.argv[sys.argv.index("--server") + 1 :][:1] or ["8765"]
        sys.exit(surefoot(["serve", "--compat", "directive-023", "--port", *port]))
    sys.exit(demo())
