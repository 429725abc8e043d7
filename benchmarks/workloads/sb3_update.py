"""CPU-seconds of one update by Stable-Baselines3, advantages included, for any shapes. JSON lines in, JSON lines out."""

from __future__ import annotations

import json
import sys
from typing import Any

from clock import seconds_each


def updater(cell: dict[str, Any]) -> Any:
    """A function that fills the buffer with the same numbers, computes advantages and trains."""
    import gymnasium
    import numpy as np
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.logger import configure
    from stable_baselines3.common.vec_env import VecEnv

    class Nothing(VecEnv):
        """So many envs of these spaces, never stepped."""

        def reset(self) -> Any: ...
        def step_async(self, actions: Any) -> None: ...
        def step_wait(self) -> Any: ...
        def close(self) -> None: ...
        def get_attr(self, attr_name: str, indices: Any = None) -> Any:
            return [None] * self.num_envs

        def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None: ...
        def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any: ...
        def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> Any:
            return [False] * self.num_envs

    shape, rng = (cell["steps"], cell["envs"]), np.random.default_rng(0)
    box = gymnasium.spaces.Box(-np.inf, np.inf, (cell["obs"],), np.float32)
    model = PPO(
        "MlpPolicy",
        Nothing(cell["envs"], box, gymnasium.spaces.Discrete(2)),
        n_steps=cell["steps"],
        batch_size=cell["minibatch"],
        n_epochs=cell["epochs"],
        learning_rate=1e-6,
        policy_kwargs={"net_arch": [cell["width"]] * cell["depth"]},
        device="cpu",
    )
    model.set_logger(configure(None, []))
    obs = rng.standard_normal((*shape, cell["obs"]), dtype=np.float32)
    with torch.no_grad():
        actions, values, log_probs = model.policy(torch.from_numpy(obs.reshape(-1, cell["obs"])))
    filled = {
        "observations": obs,
        "actions": actions.numpy().reshape(*shape, 1).astype(np.float32),
        "values": values.numpy().reshape(shape),
        "log_probs": log_probs.numpy().reshape(shape),
        "rewards": rng.standard_normal(shape, dtype=np.float32),
        "episode_starts": (rng.random(shape) < 0.02).astype(np.float32),
    }
    buffer, last = model.rollout_buffer, values[-cell["envs"] :]

    def update() -> None:
        buffer.reset()
        for name, array in filled.items():
            getattr(buffer, name)[:] = array
        buffer.full = True
        buffer.compute_returns_and_advantage(last_values=last, dones=np.zeros(cell["envs"]))
        model.train()

    return update


def main() -> None:
    import warnings

    import torch

    warnings.simplefilter("ignore")  # it warns of rollouts that do not divide into minibatches, on purpose here
    torch.set_num_threads(1)
    for line in sys.stdin:
        update = updater(json.loads(line))
        update()
        print(json.dumps({"seconds": seconds_each(update)}), flush=True)


if __name__ == "__main__":
    main()
