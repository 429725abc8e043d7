"""Envs for the tests of worker processes, which import this file by its name."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces


class Pocket(gym.Env[Any, Any]):
    """A Dict observation, a success or the return of a whole that is told, ends and time-outs of random length; exact."""

    def __init__(self) -> None:
        self.observation_space = spaces.Dict(
            {
                "place": spaces.Discrete(4),
                "wind": spaces.Box(-9, 9, (2,), np.float64),
                "map": spaces.Box(0, 255, (3, 3), np.uint8),
            }
        )
        self.action_space = spaces.MultiDiscrete([3, 2])
        self.t = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.t = 0
        return self._look(), {}

    def step(self, action: Any) -> Any:
        self.t += 1
        end = self.np_random.random()
        info: dict[str, Any] = {"is_success": bool(action[0] == 1)} if self.np_random.random() < 0.5 else {}
        if self.t % 3 == 0:
            info["whole_return"] = float(self.t) if self.t % 2 else float("nan")
        return self._look(), float(self.np_random.normal()) + float(action[1]), end < 0.1, end > 0.9, info

    def get_state(self) -> dict[str, Any]:
        return {"t": self.t}

    def set_state(self, state: dict[str, Any]) -> None:
        self.t = state["t"]

    def _look(self) -> dict[str, Any]:
        return {
            "place": int(self.np_random.integers(4)),
            "wind": self.np_random.normal(size=2),
            "map": self.np_random.integers(0, 256, (3, 3), np.uint8),
        }


class Masked(gym.Env[Any, Any]):
    """Says in its info what is allowed, from choice 1 on; ends by chance."""

    def __init__(self) -> None:
        self.observation_space = spaces.Box(-9, 9, (2,), np.float32)
        self.action_space = spaces.Discrete(5, start=1)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        return self._look(), self._info()

    def step(self, action: Any) -> Any:
        return self._look(), float(action), self.np_random.random() < 0.05, False, self._info()

    def get_state(self) -> dict[str, Any]:
        return {}

    def set_state(self, state: dict[str, Any]) -> None:
        pass

    def _look(self) -> Any:
        return self.np_random.normal(size=2).astype(np.float32)

    def _info(self) -> dict[str, Any]:
        mask = self.np_random.random(5) < 0.5
        mask[self.np_random.integers(5)] = True
        return {"action_mask": mask}


class Nested(gym.Env[Any, Any]):
    """Acts by a Tuple with a Dict inside, refuses what that does not contain, and shows the sum of it; exact."""

    def __init__(self) -> None:
        self.observation_space = spaces.Box(-99, 99, (2,), np.float32)
        stick = spaces.Dict({"force": spaces.Box(-0.1, 0.1, (2, 1), np.float64), "keys": spaces.MultiBinary(2)})
        self.action_space = spaces.Tuple((spaces.Discrete(3, start=4), stick))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action), action
        word, stick = action
        obs = np.array([word + stick["keys"].sum(), stick["force"].sum()], np.float32)
        return obs, float(obs.sum()), self.np_random.random() < 0.1, False, {}

    def get_state(self) -> dict[str, Any]:
        return {}

    def set_state(self, state: dict[str, Any]) -> None:
        pass


class Troubled(gym.Env[Any, Any]):
    """Shows its process and whether torch is loaded; action 1 fails, 2 ends the process, 3 never returns."""

    def __init__(self) -> None:
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
        self.action_space = spaces.Discrete(4)
        self.render_mode = "rgb_array"

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        return self._look(), {}

    def step(self, action: Any) -> Any:
        if action == 1:
            raise ZeroDivisionError("the pole is infinitely long")
        if action == 2:
            os._exit(7)
        while action == 3:
            pass
        return self._look(), 0.0, False, False, {}

    def render(self) -> Any:
        return np.full((2, 2, 3), 5, np.uint8)

    def _look(self) -> Any:
        return np.array([os.getpid() % 2**20, "torch" in sys.modules], np.float64)


class Numbered(gym.Env[Any, Any]):
    """Sees (which env of all that were ever built this is, how many steps it took); ends by chance; exact.

    A step is counted before it is answered, so an answer that comes twice, or from a step that was lost, is seen.
    """

    def __init__(self) -> None:
        self.observation_space = spaces.Box(0, 2**24, (2,), np.float32)
        self.action_space = spaces.Discrete(2)
        self.number, self.t = int.from_bytes(os.urandom(3), "big"), 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        return self._look(), {}

    def step(self, action: Any) -> Any:
        self.t += 1
        end = self.np_random.random()
        return self._look(), 1.0, end < 0.02, end > 0.98, {}

    def get_state(self) -> dict[str, Any]:
        return {"number": self.number, "t": self.t}

    def set_state(self, state: dict[str, Any]) -> None:
        self.number, self.t = state["number"], state["t"]

    def _look(self) -> Any:
        return np.array([self.number, self.t], np.float32)


class WithChild(Troubled):
    """Starts a process that keeps all files open and outlives it; its number is what is seen."""

    def __init__(self) -> None:
        super().__init__()
        self.child = os.fork()
        if self.child == 0:
            time.sleep(60)
            os._exit(0)

    def close(self) -> None:
        os.kill(self.child, signal.SIGKILL)
        os.waitpid(self.child, 0)

    def _look(self) -> Any:
        return np.array([self.child, 0.0], np.float64)


def once() -> gym.Env[Any, Any]:
    """Can be built until the environment says otherwise."""
    if os.environ.get("SUREFOOT_TEST_LICENCE") == "gone":
        raise RuntimeError("no licence for this simulator")
    return Pocket()


def unbuildable() -> gym.Env[Any, Any]:
    raise RuntimeError("no licence for this simulator")
