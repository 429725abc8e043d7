"""The usage examples of the first system's own document, with nothing but their import lines changed."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from surefoot.compat.hololoom import WeavingShuttle, tool

BASIC = """
from surefoot.compat.hololoom import ReflectionBuffer
from surefoot.compat.hololoom import PPOTrainer, PPOConfig
from surefoot.compat.hololoom import WeavingShuttle

# Create components
buffer = ReflectionBuffer(capacity=1000, persist_path="./reflections")
ppo_config = PPOConfig(learning_rate=3e-4, clip_epsilon=0.2)
trainer = PPOTrainer(policy=shuttle.policy.core, config=ppo_config)

# Weaving with learning
for episode in range(100):
    # Weave query
    spacetime = await shuttle.weave(query)

    # Store with feedback
    await buffer.store(spacetime, feedback={'helpful': True})

    # Periodic training
    if episode % 10 == 0 and len(buffer) >= 32:
        metrics = await trainer.train_on_buffer(buffer)
        print(f"Update {episode}: loss={metrics['policy_loss']:.3f}")
"""

REWARDS = """
from surefoot.compat.hololoom import RewardConfig, RewardExtractor

# Custom reward configuration
reward_config = RewardConfig(
    base_weight=0.5,        # Less emphasis on confidence
    quality_weight=0.4,     # More emphasis on quality
    efficiency_weight=0.1,
    error_penalty=-1.0,     # Harsher error penalty
    time_budget_ms=500.0    # Stricter time budget
)

# Use custom config
buffer = ReflectionBuffer(
    capacity=1000,
    reward_config=reward_config
)
extractor = RewardExtractor()
reward = extractor.compute_reward(spacetime, user_feedback)
experience = extractor.extract_experience(spacetime, feedback)
"""

MONITORING = """
# Track performance over time
success_rates = []
avg_rewards = []

for episode in range(100):
    spacetime = await shuttle.weave(query)
    await buffer.store(spacetime, feedback=feedback)

    # Evaluate every 20 episodes
    if episode % 20 == 0:
        recent = buffer.get_recent_episodes(n=20)
        success_rate = np.mean([ep['success'] for ep in recent])
        avg_reward = np.mean([ep['reward'] for ep in recent])

        success_rates.append(success_rate)
        avg_rewards.append(avg_reward)

        print(f"Episode {episode}: success={success_rate:.1%}, reward={avg_reward:.2f}")

# Analyze improvement
improvement = success_rates[-1] - success_rates[0]
print(f"Improvement: {improvement:+.1%}")
"""


@tool
def answer(text: str) -> str:
    """Answer questions about anything."""
    return "42"


@tool
def other(text: str) -> str:
    """Sing a song."""
    return "la"


def run(example: str, names: dict[str, object]) -> dict[str, object]:
    """The lines as they are, inside an async function: they await."""
    body = "\n".join("    " + line for line in example.splitlines())
    exec(f"async def example():\n{body}\n    return dict(locals())", names)
    return asyncio.run(names["example"]())  # type: ignore[operator]


def test_the_seeds_examples_run_with_only_their_imports_changed(encoder, tmp_path: Path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    import numpy as np

    shuttle = WeavingShuttle([answer, other], encoder=encoder)
    names: dict[str, object] = {"shuttle": shuttle, "query": "What is the answer?", "np": np}
    done = run(BASIC, names)
    assert "Update 40: loss=" in capsys.readouterr().out
    metrics = done["metrics"]
    assert {"policy_loss", "value_loss", "entropy", "kl_divergence", "update_count", "success_rate"} <= set(metrics)  # type: ignore[call-overload]
    assert shuttle.policy.core.ppo.lr == 3e-4  # type: ignore[attr-defined]
    assert os.path.exists("reflections/reflections.sqlite")

    spacetime = done["spacetime"]
    names |= {k: done[k] for k in ("buffer", "ReflectionBuffer")} | {"feedback": {"helpful": True}}
    names |= {"spacetime": spacetime, "user_feedback": None}
    custom = run(REWARDS, names)
    assert custom["experience"]["action"] == spacetime.tool_used  # type: ignore[index, attr-defined]
    assert custom["experience"]["reward"] == 1.0  # type: ignore[index]
    assert custom["experience"]["done"] is True  # type: ignore[index]

    run(MONITORING, names | {"buffer": done["buffer"]})
    assert "Improvement: " in capsys.readouterr().out
