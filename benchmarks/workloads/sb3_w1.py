"""W1 by Stable-Baselines3, in its own environment: the same shapes, its own env vector. Prints JSON."""

from __future__ import annotations

import json
import resource
import sys
import time


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main(updates: int) -> None:
    import torch

    torch.set_num_threads(1)
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env

    class Marks(BaseCallback):
        """When the first step was taken, and when warm-up was over."""

        first = begin = wall = 0.0

        def _on_step(self) -> bool:
            if not self.first:
                self.first = cpu()
            return True

        def _on_rollout_start(self) -> None:
            if self.num_timesteps == 10 * 1024:
                self.begin, self.wall = cpu(), time.perf_counter()

    env = make_vec_env("CartPole-v1", n_envs=8, seed=0)
    model = PPO("MlpPolicy", env, n_steps=128, batch_size=256, n_epochs=4, seed=0, device="cpu")
    marks = Marks()
    model.learn((10 + updates) * 1024, callback=marks)
    used, wall = cpu() - marks.begin, time.perf_counter() - marks.wall
    returns = [episode["r"] for episode in model.ep_info_buffer]
    print(
        json.dumps(
            {
                "steps_per_cpu_second": updates * 1024 / used,
                "core_share": used / wall,
                "first_step_cpu_seconds": marks.first,
                "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                "recent_return": sum(returns) / max(1, len(returns)),
            }
        )
    )


if __name__ == "__main__":
    main(int(sys.argv[1]))
