"""W4 by Stable-Baselines3 with RL Zoo's settings for CartPole-v1, until the last 100 episodes average 475. Prints JSON.

python sb3_solve.py SEED
"""

from __future__ import annotations

import sys

from clock import cpu, tell

STEPS = 100_000
"""RL Zoo's length of a run, over which its two schedules fall to zero."""


def main(seed: int) -> None:
    import torch

    torch.set_num_threads(1)
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env

    class Solved(BaseCallback):
        solved = False

        def _on_step(self) -> bool:
            return not self.solved

        def _on_rollout_start(self) -> None:
            # After an update, as on our side; the next step then ends the run.
            last = [episode["r"] for episode in self.model.ep_info_buffer]
            self.solved = len(last) == 100 and sum(last) / 100 >= 475

    model = PPO(
        "MlpPolicy",
        make_vec_env("CartPole-v1", n_envs=8, seed=seed),
        n_steps=32,
        batch_size=256,
        n_epochs=20,
        gamma=0.98,
        gae_lambda=0.8,
        ent_coef=0.0,
        learning_rate=lambda left: 0.001 * left,
        clip_range=lambda left: 0.2 * left,
        seed=seed,
        device="cpu",
    )
    begin, watch = cpu(), Solved()
    model.learn(STEPS, callback=watch)
    last = [episode["r"] for episode in model.ep_info_buffer]
    tell(
        solved=watch.solved,
        steps=model.num_timesteps,
        train_cpu_seconds=cpu() - begin,
        final_return=sum(last) / max(1, len(last)),
    )


if __name__ == "__main__":
    main(int(sys.argv[1]))
