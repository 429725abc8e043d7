"""Our own worlds as single Gymnasium envs, so that any other library can make them by id."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from surefoot.data.spaces import ActionSpace, Box, Discrete, Hybrid, MultiDiscrete, ObservationSpace
from surefoot.envs.api import Arrays, View, World
from surefoot.errors import EnvError


def own_worlds() -> Mapping[str, Callable[[int], World]]:
    """Constructors of our own worlds, classic, toy and maze, by id; they take the number of streams."""
    from surefoot.envs.builtin.classic import CLASSIC
    from surefoot.envs.builtin.maze import MAZES
    from surefoot.envs.builtin.multi_agent_toys import SHARED_REWARD
    from surefoot.envs.builtin.toys import TOYS

    return {**CLASSIC, **TOYS, **SHARED_REWARD, **MAZES}


def register_envs() -> None:
    """Make `gymnasium.make("surefoot/…")` work. Calling it again changes nothing."""
    for name in own_worlds():
        if name.startswith("surefoot/") and name not in gym.registry:
            gym.register(name, entry_point="surefoot.envs.register:WorldEnv", kwargs={"name": name})


class WorldEnv(gym.Env[Any, Any]):
    """One stream of one of our worlds, by its id or as it is, as a `gymnasium.Env`."""

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 30}  # noqa: RUF012  Gymnasium's own annotation

    def __init__(self, name: str | World, render_mode: str | None = None) -> None:
        self.world = own_worlds()[name](1) if isinstance(name, str) else name
        self.render_mode = render_mode
        self.observation_space = observation_to_gym(self.world.observation)
        self.action_space = action_to_gym(self.world.action)
        self.world.reset(0)
        if self.world.render() is None:
            self.metadata = {"render_modes": []}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        view = self.world.reset(int(self.np_random.integers(2**31)))
        return self._first(view.obs), _info(view)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if isinstance(self.world.action, Hybrid):
            action = np.concatenate([action["choices"], action["numbers"].ravel()]).astype(np.float32)
        step = self.world.step(np.asarray(action)[None])
        ended = bool(step.terminated[0] or step.truncated[0])
        obs = step.final_obs if ended and step.final_obs is not None else step.view.obs
        info = {name: float(numbers[0]) for name, numbers in step.stats.items()}
        if ended and "success" in info:
            info["is_success"] = info["success"]
        info |= {} if ended else _info(step.view)
        return self._first(obs), float(step.reward[0]), bool(step.terminated[0]), bool(step.truncated[0]), info

    def render(self) -> Any:
        return self.world.render() if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        self.world.close()

    def get_state(self) -> dict[str, Any]:
        """The world's state; the generator that seeds its episodes is Gymnasium's, kept with every env."""
        return self.world.state()

    def set_state(self, state: dict[str, Any]) -> None:
        self.world.set_state(state)

    def _first(self, obs: Arrays) -> Any:
        first = {name: part[0].copy() for name, part in obs.items()}
        return first["obs"] if isinstance(self.observation_space, spaces.Box) else first


def observation_to_gym(observation: ObservationSpace) -> gym.Space[Any]:
    """A Box for a world with one observation called "obs", else a Dict."""
    if set(observation) == {"obs"}:
        return _box(observation["obs"])
    return spaces.Dict({name: _box(box) for name, box in observation.items()})


def action_to_gym(action: ActionSpace) -> gym.Space[Any]:
    match action:
        case Box():
            return _box(action)
        case Discrete():
            return spaces.Discrete(action.n, start=action.start)
        case MultiDiscrete():
            return spaces.MultiDiscrete(list(action.nvec))
        case Hybrid():
            return spaces.Dict({"choices": spaces.MultiDiscrete(list(action.nvec)), "numbers": _box(action.box)})


def _box(box: Box) -> spaces.Box:
    if box.dtype not in ("float32", "uint8"):
        raise EnvError(f"a box of {box.dtype} has no Gymnasium space here; float32 and uint8 have")
    low, high = box.bounds()
    dtype = np.dtype(box.dtype).type
    return spaces.Box(low.astype(dtype), high.astype(dtype), box.shape, dtype)


def _info(view: View) -> dict[str, Any]:
    return {} if view.action_mask is None else {"action_mask": view.action_mask[0].astype(np.int8)}
