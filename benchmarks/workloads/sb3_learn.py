"""One seed of Stable-Baselines3's defaults on one task, judged as ours is: last policy, deterministic. Prints JSON."""

from __future__ import annotations

import json
import resource
import sys


def main(env_id: str, steps: int, seed: int, episodes: int, eval_seed: int) -> None:
    import torch

    torch.set_num_threads(1)
    import gymnasium as gym
    import numpy as np
    from stable_baselines3 import PPO

    model = PPO("MlpPolicy", env_id, seed=seed, device="cpu")
    model.learn(steps)
    env, returns = gym.make(env_id), []
    for episode in range(episodes):
        obs, _ = env.reset(seed=eval_seed + episode)
        total, over = 0.0, False
        while not over:
            action, _ = model.predict(obs, deterministic=True)
            obs, reward, terminated, truncated, _ = env.step(action)
            total, over = total + float(reward), terminated or truncated
        returns.append(total)
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(
        json.dumps(
            {"mean": float(np.mean(returns)), "std": float(np.std(returns)), "cpu": used.ru_utime + used.ru_stime}
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
