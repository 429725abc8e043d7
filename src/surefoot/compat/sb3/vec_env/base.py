"""`VecEnv` and `VecEnvWrapper`: SB3's interface to several envs that are stepped together."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from copy import deepcopy
from importlib import import_module
from typing import Any

import gymnasium as gym
import numpy as np

VecEnvIndices = None | int | Iterable[int]
VecEnvObs = Any
"""[N, …], or a dict or tuple of such arrays."""
VecEnvStepReturn = tuple[VecEnvObs, np.ndarray, np.ndarray, list[dict[str, Any]]]


def tile_images(images: Sequence[np.ndarray]) -> np.ndarray:
    """Return N pictures [H, W, C] as one picture, in a grid that is as square as possible."""
    stack = np.asarray(images)
    count, height, width, channels = stack.shape
    rows = int(np.ceil(np.sqrt(count)))
    columns = int(np.ceil(count / rows))
    grid = np.zeros((rows * columns, height, width, channels), stack.dtype)
    grid[:count] = stack
    return grid.reshape(rows, columns, height, width, channels).swapaxes(1, 2).reshape(rows * height, -1, channels)


class VecEnv(ABC):
    """N envs behind one `reset` and `step`; an episode that ends is followed by the next one.

    `step` returns (observations, rewards, dones, infos). The last observation of an episode is in
    `infos[i]["terminal_observation"]`, and `infos[i]["TimeLimit.truncated"]` is True if a time limit ended it.
    """

    def __init__(self, num_envs: int, observation_space: gym.Space[Any], action_space: gym.Space[Any]) -> None:
        self.num_envs = num_envs
        self.observation_space, self.action_space = observation_space, action_space
        self.reset_infos: list[dict[str, Any]] = [{} for _ in range(num_envs)]
        self._reset_seeds()
        self._reset_options()
        try:
            modes = self.get_attr("render_mode")
        except AttributeError:
            warnings.warn("the envs have no attribute render_mode; None is assumed", stacklevel=2)
            modes = [None] * num_envs
        assert all(mode == modes[0] for mode in modes), "all envs must have the same render_mode"
        self.render_mode: str | None = modes[0]
        # Pictures can be shown in a window, so "rgb_array" includes "human".
        known = ["human", "rgb_array"] if self.render_mode == "rgb_array" else [self.render_mode]
        self.metadata: dict[str, Any] = {"render_modes": known if self.render_mode is not None else []}

    def _reset_seeds(self) -> None:
        """Forget the seeds of the next `reset`."""
        self._seeds: list[int | None] = [None] * self.num_envs

    def _reset_options(self) -> None:
        """Forget the options of the next `reset`."""
        self._options: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]

    @abstractmethod
    def reset(self) -> VecEnvObs:
        """Start N new episodes and return their first observations."""

    @abstractmethod
    def step_async(self, actions: Any) -> None:
        """Start a step; `step_wait` returns its result."""

    @abstractmethod
    def step_wait(self) -> VecEnvStepReturn:
        """Return the result of the step that `step_async` started."""

    @abstractmethod
    def close(self) -> None:
        """Close all envs."""

    @abstractmethod
    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Return an attribute of each env, found in any of its wrappers."""

    @abstractmethod
    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute of each env's outermost wrapper."""

    @abstractmethod
    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call a method of each env and return the results."""

    @abstractmethod
    def env_is_wrapped(self, wrapper_class: type[Any], indices: VecEnvIndices = None) -> list[bool]:
        """Return for each env whether one of its wrappers is a `wrapper_class`."""

    def has_attr(self, attr_name: str) -> bool:
        """Return whether all envs have an attribute."""
        try:
            self.get_attr(attr_name)
        except AttributeError:
            return False
        return True

    def step(self, actions: Any) -> VecEnvStepReturn:
        self.step_async(actions)
        return self.step_wait()

    def get_images(self) -> Sequence[np.ndarray | None]:
        raise NotImplementedError

    def render(self, mode: str | None = None) -> np.ndarray | None:
        """Return one picture of all envs, or show it with mode "human"."""
        shown = self.render_mode
        if mode is not None and mode != shown and not (mode == "human" and shown == "rgb_array"):
            warnings.warn(f"the envs were made with render_mode={shown!r}; they cannot render {mode!r}", stacklevel=2)
            return None
        if shown is None:
            warnings.warn("the envs were made without a render_mode; pass one to render", stacklevel=2)
            return None
        if shown != "rgb_array":
            self.env_method("render")
            return None
        picture = tile_images([image for image in self.get_images() if image is not None])
        if mode != "human":
            return picture
        cv2 = import_module("cv2")  # opencv is needed for this one window only
        cv2.imshow("vecenv", picture[:, :, ::-1])
        cv2.waitKey(1)
        return None

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Set the seeds of the next `reset`: seed, seed + 1, … Without one, a random seed is drawn."""
        if seed is None:
            # SB3 draws it from numpy's global generator, so that set_random_seed determines it.
            seed = int(np.random.randint(0, np.iinfo(np.uint32).max, dtype=np.uint32))  # noqa: NPY002
        self._seeds = [seed + i for i in range(self.num_envs)]
        return self._seeds

    def set_options(self, options: list[dict[str, Any]] | dict[str, Any] | None = None) -> None:
        """Set the options of the next `reset`: one dict for all envs, or one each."""
        each = options if isinstance(options, list) else [options or {}] * self.num_envs
        self._options = deepcopy(each)

    @property
    def unwrapped(self) -> VecEnv:
        return self

    def getattr_depth_check(self, name: str, already_found: bool) -> str | None:
        """Return the class that has the attribute `name` if a wrapper outside has it too."""
        return _class_name(self) if already_found and hasattr(self, name) else None

    def _get_indices(self, indices: VecEnvIndices) -> Iterable[int]:
        if indices is None:
            return range(self.num_envs)
        return [indices] if isinstance(indices, int) else indices


class VecEnvWrapper(VecEnv):
    """A vec env around another one. Attributes that it does not have are those of the inner vec envs."""

    def __init__(
        self,
        venv: VecEnv,
        observation_space: gym.Space[Any] | None = None,
        action_space: gym.Space[Any] | None = None,
    ) -> None:
        self.venv = venv
        observation, action = observation_space or venv.observation_space, action_space or venv.action_space
        super().__init__(venv.num_envs, observation, action)

    @abstractmethod
    def reset(self) -> VecEnvObs: ...

    @abstractmethod
    def step_wait(self) -> VecEnvStepReturn: ...

    def step_async(self, actions: Any) -> None:
        self.venv.step_async(actions)

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        return self.venv.seed(seed)

    def set_options(self, options: list[dict[str, Any]] | dict[str, Any] | None = None) -> None:
        self.venv.set_options(options)

    def close(self) -> None:
        self.venv.close()

    def render(self, mode: str | None = None) -> np.ndarray | None:
        return self.venv.render(mode=mode)

    def get_images(self) -> Sequence[np.ndarray | None]:
        return self.venv.get_images()

    def has_attr(self, attr_name: str) -> bool:
        return self.venv.has_attr(attr_name)

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        return self.venv.get_attr(attr_name, indices)

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        self.venv.set_attr(attr_name, value, indices)

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **method_kwargs: Any
    ) -> list[Any]:
        return self.venv.env_method(method_name, *method_args, indices=indices, **method_kwargs)

    def env_is_wrapped(self, wrapper_class: type[Any], indices: VecEnvIndices = None) -> list[bool]:
        return self.venv.env_is_wrapped(wrapper_class, indices=indices)

    @property
    def unwrapped(self) -> VecEnv:
        return self.venv.unwrapped

    def __getattr__(self, name: str) -> Any:
        # While an object is copied or unpickled it has no attributes yet; looking for `venv` would never end.
        if name.startswith("__") or "venv" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        if (hidden := self.getattr_depth_check(name, already_found=False)) is not None:
            raise AttributeError(
                f"{name} of {_class_name(self)} is ambiguous: two of the wrapped vec envs have it, one is {hidden}"
            )
        return self.getattr_recursive(name)

    def getattr_recursive(self, name: str) -> Any:
        """Return the attribute `name` of the outermost wrapper that has it."""
        if self._has(name):
            return getattr(self, name)
        inner: Any = self.venv
        return inner.getattr_recursive(name) if isinstance(inner, VecEnvWrapper) else getattr(inner, name)

    def getattr_depth_check(self, name: str, already_found: bool) -> str | None:
        if self._has(name):
            if already_found:
                return _class_name(self)
            already_found = True
        return self.venv.getattr_depth_check(name, already_found)

    def _has(self, name: str) -> bool:
        return name in self.__dict__ or hasattr(type(self), name)


def _class_name(env: VecEnv) -> str:
    return f"{type(env).__module__}.{type(env).__name__}"
