"""W1 on our side: CartPole-v1, 64×64 tanh, 8 envs × 128 steps, 4 epochs × 4 minibatches of 256. Prints JSON."""

from __future__ import annotations

import json
import resource
import sys
import time


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main(backend: str, updates: int) -> None:
    import torch

    torch.set_num_threads(1)
    from surefoot.envs.make import make_world
    from surefoot.learn.config import PPOConfig
    from surefoot.learn.learner import Learner
    from surefoot.nets.actor_critic import ActorCritic
    from surefoot.train.collect import Collector

    world = make_world("CartPole-v1", 8, backend="auto" if backend == "own" else "gymnasium")
    config = PPOConfig(envs=8, steps=128, epochs=4, minibatch_size=256, path="torch")
    policy = ActorCritic(world.observation, world.action)
    learner = Learner(policy, config)
    collector = Collector(world, policy, steps=1, gamma=config.gamma)
    collector.collect(0)
    first_step = cpu()
    collector.steps = config.steps
    for _ in range(10):
        learner.update(collector.collect(learner.policy_version))
    begin, wall = cpu(), time.perf_counter()
    for _ in range(updates):
        learner.update(collector.collect(learner.policy_version))
    used, wall = cpu() - begin, time.perf_counter() - wall
    print(
        json.dumps(
            {
                "steps_per_cpu_second": updates * 1024 / used,
                "core_share": used / wall,
                "first_step_cpu_seconds": first_step,
                "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                "recent_return": collector.episodes.recent()[0],
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
