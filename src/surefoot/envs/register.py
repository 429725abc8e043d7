"""Environments by id: Gymnasium's registry, and the built-in environments as Gymnasium envs for other libraries."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from surefoot.data.spaces import ActionSpace, Box, Discrete, Hybrid, MultiDiscrete, ObservationSpace
from surefoot.envs.api import Arrays, View, World
from surefoot.envs.gym.atari import is_atari, register_games
from surefoot.errors import EnvError, SurefootError, UnknownEnv


def own_worlds() -> Mapping[str, Callable[[int], World]]:
    """Return the constructors of all built-in environments by id; they take the number of streams."""
    from surefoot.envs.builtin.classic import CLASSIC
    from surefoot.envs.builtin.maze import MAZES
    from surefoot.envs.builtin.multi_agent_toys import SHARED_REWARD
    from surefoot.envs.builtin.toys import TOYS

    return {**CLASSIC, **TOYS, **SHARED_REWARD, **MAZES}


def register_envs() -> None:
    """Register the ids "surefoot/…" with Gymnasium. Repeated calls do nothing."""
    for name in own_worlds():
        if name.startswith("surefoot/") and name not in gym.registry:
            gym.register(name, entry_point="surefoot.envs.register:WorldEnv", kwargs={"name": name})


@dataclass(frozen=True, slots=True)
class SpecBuilder:
    """Build one env of a registered id. The spec is sent to workers, where the id may not be registered."""

    name: str
    spec: Any
    kwargs: dict[str, Any]
    max_episode_steps: int | None

    def __call__(self) -> Any:
        try:
            with _without_model_warnings(self.spec):
                return gym.make(self.spec, self.max_episode_steps, disable_env_checker=True, **self.kwargs)
        except (gym.error.DependencyNotInstalled, ImportError) as error:
            entry = str(self.spec.entry_point)
            extras = [e for part, e in (("mujoco", "mujoco"), ("box2d", "box2d"), ("ale_py", "atari")) if part in entry]
            advice = f'; pip install "surefoot[{extras[0]}]"' if extras else ""
            raise EnvError(f"{self.name} needs a package that is not installed ({error}){advice}") from error
        except SurefootError:
            raise
        except Exception as error:
            raise EnvError(
                f"{self.name} could not be made with {self.kwargs or 'its defaults'}: {str(error) or repr(error)}"
            ) from error


@contextmanager
def _without_model_warnings(spec: Any) -> Generator[None]:
    """Silence MuJoCo's warnings about Gymnasium's model files, one per env, and their log file ./MUJOCO_LOG.TXT."""
    if not str(spec.entry_point).startswith("gymnasium.envs.mujoco"):
        yield
        return
    mujoco = importlib.import_module("mujoco")
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(str)  # any function that does nothing with the message
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)


def registered_spec(name: str) -> Any:
    """Return Gymnasium's spec of an id; raise `UnknownEnv` with similar ids if there is none."""
    if name not in gym.registry and (is_atari(name) or name.startswith("ALE/")):
        register_games(name)
    if name in gym.registry:
        return gym.registry[name]
    if name.endswith((".so", ".dylib")):
        raise UnknownEnv(f"there is no env {name!r}; an environment in C needs its path: ./{name}")
    near = difflib.get_close_matches(name, [*gym.registry, *own_worlds()], n=3, cutoff=0.6)
    advice = f"did you mean {' or '.join(dict.fromkeys(near))}?" if near else "gymnasium.pprint_registry() lists them."
    # Most ids that people type without success are those of packages: Gymnasium knows them once the package is imported.
    raise UnknownEnv(f"there is no env {name!r}; {advice} Pass MODULE:{name} if a package registers it")


class WorldEnv(gym.Env[Any, Any]):
    """A `gymnasium.Env` with one stream of a built-in environment (by id) or of a given `World`."""

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
        """Return the world's state, without Gymnasium's generator that seeds its episodes (`snapshot` saves it)."""
        return self.world.state()

    def set_state(self, state: dict[str, Any]) -> None:
        self.world.set_state(state)

    def _first(self, obs: Arrays) -> Any:
        first = {name: part[0].copy() for name, part in obs.items()}
        return first["obs"] if isinstance(self.observation_space, spaces.Box) else first


def observation_to_gym(observation: ObservationSpace) -> gym.Space[Any]:
    """Return a Box for a single observation called "obs", otherwise a Dict."""
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
        raise EnvError(f"a box of {box.dtype} cannot be converted to a Gymnasium space; only float32 and uint8 can")
    low, high = box.bounds()
    dtype = np.dtype(box.dtype).type
    return spaces.Box(low.astype(dtype), high.astype(dtype), box.shape, dtype)


def _info(view: View) -> dict[str, Any]:
    return {} if view.action_mask is None else {"action_mask": view.action_mask[0].astype(np.int8)}
