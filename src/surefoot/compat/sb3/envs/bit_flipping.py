"""`BitFlippingEnv`: flip bits until all of them are 1."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec


class BitFlippingEnv(gym.Env[Any, Any]):
    """A goal env: action i flips bit i, or each positive number of a continuous action its bit.

    Observation, achieved and desired goal are bits, one integer (`discrete_obs_space`) or an image (`image_obs_space`).
    The reward is 0 at the goal and -1 elsewhere; an episode ends there or after `max_steps`, by default one per bit.
    """

    spec = EnvSpec("BitFlippingEnv-v0", "no-entry-point")
    state: np.ndarray

    def __init__(
        self,
        n_bits: int = 10,
        continuous: bool = False,
        max_steps: int | None = None,
        discrete_obs_space: bool = False,
        image_obs_space: bool = False,
        channel_first: bool = True,
        render_mode: str = "human",
    ) -> None:
        if discrete_obs_space and image_obs_space:
            raise ValueError("pass discrete_obs_space or image_obs_space, not both")
        self.render_mode, self.continuous = render_mode, continuous
        self.discrete_obs_space, self.image_obs_space = discrete_obs_space, image_obs_space
        # 36 is the smallest size that NatureCNN takes.
        self.image_shape = (1, 36, 36) if channel_first else (36, 36, 1)
        parts = ("observation", "achieved_goal", "desired_goal")
        self.observation_space = spaces.Dict({name: self._part_space(n_bits) for name in parts})
        self._bits = spaces.MultiBinary(n_bits)
        self.action_space = spaces.Box(-1, 1, (n_bits,), np.float32) if continuous else spaces.Discrete(n_bits)
        self.desired_goal = np.ones(n_bits, np.int8)
        self.max_steps = n_bits if max_steps is None else max_steps
        self.current_step = 0

    def _part_space(self, n_bits: int) -> spaces.Space[Any]:
        if self.discrete_obs_space:
            return spaces.Discrete(2**n_bits)
        return spaces.Box(0, 255, self.image_shape, np.uint8) if self.image_obs_space else spaces.MultiBinary(n_bits)

    def seed(self, seed: int) -> None:
        """Seed the first states."""
        self._bits.seed(seed)

    def convert_if_needed(self, state: np.ndarray) -> int | np.ndarray:
        """Return bits in the form of the observation space."""
        if self.discrete_obs_space:
            return int(sum(int(bit) << i for i, bit in enumerate(state)))
        if self.image_obs_space:
            image = np.zeros(int(np.prod(self.image_shape)), np.uint8)
            image[: len(state)] = state.astype(np.uint8) * 255
            return image.reshape(self.image_shape)
        return state

    def convert_to_bit_vector(self, state: Any, batch_size: int) -> np.ndarray:
        """Return observations as bits, [batch_size, n_bits]."""
        rows, count = np.array(state).reshape(batch_size, -1), len(self.desired_goal)
        if self.discrete_obs_space:
            return (rows & (1 << np.arange(count)) > 0).astype(int)
        return rows[:, :count] / 255 if self.image_obs_space else rows

    def _get_obs(self) -> dict[str, Any]:
        achieved = self.convert_if_needed(self.state.copy())
        return {
            "observation": self.convert_if_needed(self.state.copy()),
            "achieved_goal": achieved,
            "desired_goal": self.convert_if_needed(self.desired_goal.copy()),
        }

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode with random bits."""
        super().reset(seed=seed)
        if seed is not None:
            self._bits.seed(seed)
        self.current_step, self.state = 0, self._bits.sample()
        return self._get_obs(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        flipped = np.asarray(action) > 0 if self.continuous else action
        self.state[flipped] = 1 - self.state[flipped]
        self.current_step += 1
        obs = self._get_obs()
        reward = float(self.compute_reward(obs["achieved_goal"], obs["desired_goal"], None).item())
        return obs, reward, reward == 0, self.current_step >= self.max_steps, {"is_success": reward == 0}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, _info: Any) -> np.ndarray:
        """Return 0 where the goals are equal and -1 elsewhere, for one goal or a batch."""
        single = 0 if self.discrete_obs_space else len(self.image_shape) if self.image_obs_space else 1
        count = len(achieved_goal) if np.ndim(achieved_goal) > single else 1
        achieved, desired = (self.convert_to_bit_vector(x, count) for x in (achieved_goal, desired_goal))
        return -np.any(achieved != desired, axis=-1).astype(np.float32)

    def render(self) -> np.ndarray | None:  # type: ignore[override]  # the bits are the picture, as in SB3
        """Print the bits, or return them with render_mode="rgb_array"."""
        if self.render_mode == "rgb_array":
            return self.state.copy()
        print(self.state)
        return None
