"""The engine without a facade: rollouts go by, reports come out, and you decide what happens in between.

python examples/iterate.py
"""

import os

import torch

from surefoot import ActorCritic, Collector, Learner, PPOConfig, live, make_world, training_loop
from surefoot.train.evaluate import play

STEPS = int(os.environ.get("SUREFOOT_EXAMPLE_STEPS", "50_000"))


def main() -> None:
    torch.set_num_threads(1)
    config = PPOConfig.make(preset="cartpole", seed=1)
    world = make_world("CartPole-v1", config.envs)
    policy = ActorCritic(world.observation, world.action, seed=config.seed)
    updates = -(-STEPS // config.batch_size)
    learner = Learner(policy, config, total_updates=updates)
    collector = Collector(world, policy, steps=config.rollout_steps, gamma=config.gamma, seed=config.seed)

    for report in training_loop(live(collector, learner), learner):
        if report.update % 20 == 0 or report.update == updates:
            recent, _, _ = collector.episodes.recent()
            shown = "-" if recent is None else f"{recent:.0f}"
            print(f"update {report.update:4}  return {shown:>4}  kl {report.approx_kl:.4f}  lr {report.lr:.1e}")
        if report.update == updates:
            break

    played = play(policy, make_world("CartPole-v1", 10), 20, seed=100)
    print(f"{played.mean:.0f} ± {played.std:.0f} over 20 deterministic episodes")


if __name__ == "__main__":
    main()
