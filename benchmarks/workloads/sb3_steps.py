"""W1 and W2 by Stable-Baselines3, in its own environment: the same shapes, its own env vector. Prints JSON.

python sb3_steps.py WORKLOAD SECONDS
"""

from __future__ import annotations

import sys

from clock import Stretch, cpu, tell
from shapes import SHAPES


def main(workload: str, seconds: float) -> None:
    import torch

    torch.set_num_threads(1)
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env

    shape = SHAPES[workload]

    class Marks(BaseCallback):
        """When the first step was taken, when warm-up was over, and when it is enough.

        Rollouts begin where updates end: a rollout's first step is where whole updates are counted.
        """

        first, begin, numbers = 0.0, 0, None
        stretch: Stretch | None = None

        def _on_rollout_start(self) -> None:
            if self.stretch is None and self.num_timesteps >= shape.warm_up * shape.rollout:
                self.begin, self.stretch = self.num_timesteps, Stretch(seconds)
            elif self.stretch is not None and self.stretch.enough:
                self.numbers = self.stretch.numbers(self.num_timesteps - self.begin)

        def _on_step(self) -> bool:
            if not self.first:
                self.first = cpu()
            return self.numbers is None

    env = make_vec_env(shape.env, n_envs=shape.envs, seed=0)
    model = PPO(
        "MlpPolicy",
        env,
        n_steps=shape.steps,
        batch_size=shape.minibatch,
        n_epochs=shape.epochs,
        seed=0,
        device="cpu",
    )
    marks = Marks()
    model.learn(10**9, callback=marks)
    returns = [episode["r"] for episode in model.ep_info_buffer]
    assert marks.numbers is not None
    tell(
        **marks.numbers,
        first_step_cpu_seconds=marks.first,
        final_return=sum(returns) / max(1, len(returns)),
    )


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
