"""Memory, masks and pictures by Stable-Baselines3 and sb3-contrib, in their own environment. Prints JSON.

python sb3_shapes.py memory|masks|pictures SECONDS
"""

from __future__ import annotations

import sys
from typing import Any

from clock import Laps, tell
from odd_shapes import ODD
from odd_worlds import Catch, InOrder, NoVelocity


def main(workload: str, seconds: float) -> None:
    import torch

    torch.set_num_threads(1)
    from sb3_contrib import MaskablePPO, RecurrentPPO
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env

    shape, laps = ODD[workload], Laps(seconds)
    algorithm, policy, world, extra = {
        "memory": (RecurrentPPO, "MlpLstmPolicy", NoVelocity, {"policy_kwargs": {"lstm_hidden_size": shape.memory}}),
        "masks": (MaskablePPO, "MlpPolicy", InOrder, {}),
        "pictures": (PPO, "CnnPolicy", Catch, {}),
    }[workload]

    class Marks(BaseCallback):
        def _on_step(self) -> bool:
            return not laps.enough

        def _on_rollout_start(self) -> None:
            self.at = getattr(self, "at", 0) + 1
            if self.at == shape.warm_up + 1:
                laps.begin()

    kwargs: dict[str, Any] = {} if workload != "pictures" else {"normalize_images": True}
    model = algorithm(
        policy,
        make_vec_env(world, n_envs=shape.envs, seed=0),
        n_steps=shape.steps,
        batch_size=shape.minibatch,
        n_epochs=shape.epochs,
        seed=0,
        device="cpu",
        policy_kwargs=extra.get("policy_kwargs", {}) | kwargs,
    )
    model.learn((shape.warm_up + shape.updates) * shape.rollout, callback=Marks())
    laps.end(shape.updates * shape.rollout)
    tell(**laps.numbers())


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
