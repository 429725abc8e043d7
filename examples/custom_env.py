"""Your own env: checked, trained, and resumed bit-exactly because it can save its state.

python examples/custom_env.py
surefoot train custom_env:make --steps 20_000          (from this directory)
"""

import os
from typing import Any

import gymnasium as gym
import numpy as np

from surefoot import PPO, check_env, evaluate_policy

STEPS = int(os.environ.get("SUREFOOT_EXAMPLE_STEPS", "20_000"))


class Catch(gym.Env):
    """A point on a line has 40 steps to stand on its target; it sees how far away that is."""

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Box(-2.0, 2.0, (1,))
        self.action_space = gym.spaces.Discrete(3)
        self.distance = 0.0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        self.distance = float(self.np_random.uniform(-1.0, 1.0))
        return self._see(), {}

    def step(self, action: int):
        self.distance = float(np.clip(self.distance + 0.1 * (action - 1), -2.0, 2.0))
        caught = abs(self.distance) < 0.06
        return self._see(), 1.0 if caught else -0.05, caught, False, {"is_success": caught}

    def _see(self) -> np.ndarray:
        return np.array([self.distance], np.float32)

    def get_state(self) -> dict[str, float]:
        return {"distance": self.distance}

    def set_state(self, state: dict[str, float]) -> None:
        self.distance = state["distance"]


def make() -> gym.Env:
    return gym.wrappers.TimeLimit(Catch(), 40)


if __name__ == "__main__":
    print("\n".join(map(str, check_env(make))) or "check_env has nothing to complain about")
    model = PPO("MlpPolicy", make, seed=1).learn(STEPS)
    mean, std = evaluate_policy(model, make, n_eval_episodes=20)
    print(f"mean return {mean:.2f} ± {std:.2f}; walking straight there gives 0.80 on average")
