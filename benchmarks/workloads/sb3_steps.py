"""W1 and W2 by Stable-Baselines3, in its own environment: the same shapes, its own env vector. Prints JSON.

python sb3_steps.py WORKLOAD SECONDS
"""

from __future__ import annotations

import sys

from clock import Laps, cpu, tell
from shapes import SHAPES


def main(workload: str, seconds: float) -> None:
    import torch

    torch.set_num_threads(1)
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env

    shape = SHAPES[workload]

    laps = Laps(seconds)

    class Marks(BaseCallback):
        """When the first step was taken, and when warm-up was over."""

        first = 0.0

        def _on_step(self) -> bool:
            Marks.first = Marks.first or cpu()
            return True

        def _on_rollout_start(self) -> None:
            if self.num_timesteps == shape.warm_up * shape.rollout:
                laps.begin()

    while True:
        model = PPO(
            "MlpPolicy",
            make_vec_env(shape.env, n_envs=shape.envs, seed=0),
            n_steps=shape.steps,
            batch_size=shape.minibatch,
            n_epochs=shape.epochs,
            seed=0,
            device="cpu",
            **shape.settings,
        )
        model.learn((shape.warm_up + shape.updates) * shape.rollout, callback=Marks())
        laps.end(shape.updates * shape.rollout)
        if laps.enough:
            break
    returns = [episode["r"] for episode in model.ep_info_buffer]
    tell(
        **laps.numbers(),
        first_step_cpu_seconds=Marks.first,
        final_return=sum(returns) / max(1, len(returns)),
    )


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
