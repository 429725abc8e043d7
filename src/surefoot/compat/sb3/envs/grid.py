"""`SimpleMultiObsEnv`: a walk around a square, seen as a vector and an image."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

# Cells of the 4 × 4 grid, row by row, from which left, down, right and up lead to another cell: the four in the middle are walls.
POSSIBLE = ((1, 2, 3, 13, 14, 15), (0, 4, 8, 3, 7, 11), (0, 1, 2, 12, 13, 14), (4, 8, 12, 7, 11, 15))
NAMES = ("left", "down", "right", "up")


class SimpleMultiObsEnv(gym.Env[Any, Any]):
    """Walk from cell 0, or a random one, to the last cell. Each step costs 0.1, the goal gives 1.

    "vec" is a random vector and "img" a random image; both are drawn once per column and row when the env is created.
    """

    def __init__(
        self,
        num_col: int = 4,
        num_row: int = 4,
        random_start: bool = True,
        discrete_actions: bool = True,
        channel_last: bool = True,
    ) -> None:
        self.vector_size, self.num_col = 5, num_col
        self.img_size = [64, 64, 1] if channel_last else [1, 64, 64]
        self.random_start, self.discrete_actions = random_start, discrete_actions
        self.action_space = spaces.Discrete(4) if discrete_actions else spaces.Box(0, 1, (4,))
        vector, image = spaces.Box(0, 1, (self.vector_size,), np.float64), spaces.Box(0, 255, self.img_size, np.uint8)
        self.observation_space = spaces.Dict({"vec": vector, "img": image})
        # numpy's global generator, as in SB3: set_random_seed determines the observations.
        vectors = np.random.random((num_col, self.vector_size))  # noqa: NPY002
        images = np.random.randint(0, 255, (num_row, *self.img_size), dtype=np.uint8)  # noqa: NPY002
        self.state_mapping = [{"vec": vec, "img": img} for vec in vectors for img in images]
        self.max_state, self.max_count = len(self.state_mapping) - 1, 100
        self.state = self.count = 0
        self.log = ""

    def get_state_mapping(self) -> dict[str, np.ndarray]:
        """Return the observation of the current cell."""
        return self.state_mapping[self.state]

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Move, if there is no wall."""
        way = int(action if self.discrete_actions else np.argmax(action))
        before = self.state
        if before in POSSIBLE[way]:
            self.state += (-1, self.num_col, 1, -self.num_col)[way]
        self.count += 1
        goal = self.state == self.max_state
        self.log = f"{NAMES[way]} from cell {before} to cell {self.state}"
        return self.get_state_mapping(), 1.0 if goal else -0.1, goal, self.count > self.max_count, {"got_to_end": goal}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.count = 0
        self.state = int(np.random.randint(0, self.max_state)) if self.random_start else 0  # noqa: NPY002
        return self.get_state_mapping(), {}

    def render(self) -> None:
        """Print the last move."""
        print(self.log)
