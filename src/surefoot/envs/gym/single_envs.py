"""`EnvsWorld`: N single Gymnasium envs, stepped one after the other in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from surefoot.envs.api import Arrays, Step, View
from surefoot.envs.gym.nested_actions import former
from surefoot.envs.gym.snapshot import export_state, import_state, why_inexact
from surefoot.envs.gym.spaces import (
    MASK,
    HasMasks,
    action_from_gym,
    action_writer,
    choices,
    masker,
    missing_mask,
    observation_reader,
    read_mask,
    refuse_empty,
)
from surefoot.envs.gym.vector_env import restart_seed, view_from_state, view_to_state
from surefoot.errors import CheckpointIncompatible, EnvError, ShapeError, SpaceError, SurefootError

SingleEnv = gym.Env[Any, Any]
REPORTS = {"is_success": "success", "whole_return": "whole_return"}
"""{key of the info at the end of an episode: name in `Step.stats`}. An env that reports `whole_return` does so at every
end, NaN where the game continues."""


class EnvsWorld:
    """Envs built by `env_fns`; a stream that ends starts its next episode in the same step.

    `first` is the number of env 0 in error messages, where these envs are a part of a larger world.
    """

    backend = "gymnasium"
    placed: str | None = None
    """Why the envs run in this process, where that was a choice."""

    def __init__(self, env_fns: Sequence[Callable[[], SingleEnv]], name: str | None = None, *, first: int = 0) -> None:
        self.first = first
        self.envs: list[SingleEnv] = []
        try:
            for build in env_fns:
                self.envs.append(build())
            self._read_spaces(name)
        except BaseException:
            self.close()
            raise
        reason = next((reason for env in self.envs if (reason := why_inexact(env)) is not None), None)
        self.inexact = None if reason is None else f"{self.name}: {reason}"
        self.view: View | None = None
        self._seed = self._count = 0
        self._every = np.ones(self.num_envs, np.bool_)
        self._every.flags.writeable = False

    def reset(self, seed: int) -> View:
        obs = self._reader.empty(self.num_envs)
        results: list[Any] = []
        for i, env in enumerate(self.envs):
            env.action_space.seed(seed + i)
            first, info = self._reset_one(i, seed + i)
            for name, part in self._reader.parts.items():
                shape = np.shape(first if part.key is None else first[part.key])
                if shape != part.shape:
                    raise EnvError(
                        f"{self._env(i)} returns {name!r} as {list(shape)}, but its space has {list(part.shape)}; make "
                        "the two agree (surefoot.check_env finds more problems)"
                    )
            self._reader.write(obs, i, first)
            results.append((first, info))
        self._seed, self._count = seed, 0
        self._find_masks(results[0][1])
        self.view = View(obs=obs, action_mask=self._mask(results))
        return self.view

    def step(self, action: np.ndarray) -> Step:
        if self.view is None:
            raise EnvError(f"{self.name} was stepped before its first reset; call reset(seed) once")
        return self.take(written_actions(self.name, self.num_envs, action, self._write_action, self._count))

    def take(self, actions: np.ndarray) -> Step:
        """Step with actions in the envs' dtype and shape."""
        n = self.num_envs
        if self._plain:
            rows = np.empty(self._obs_shape, self._obs_dtype)
            out = {"obs": rows}
        else:
            rows, out = None, self._reader.empty(n)
        reward = np.empty(n)
        terminated = np.zeros(n, np.bool_)
        truncated = np.zeros(n, np.bool_)
        results: list[Any] = []
        ended: list[tuple[int, Any]] = []
        i, result = 0, None
        try:
            for i, (step, act) in enumerate(zip(self._steps, actions, strict=True)):
                result = step(act)
                obs, reward[i], over, cut, info = result
                if rows is not None:
                    rows[i] = obs
                else:
                    self._reader.write(out, i, obs)
                if over or cut:
                    terminated[i] = over
                    truncated[i] = not over
                    ended.append((i, info))
                if self._masked:
                    results.append((obs, info))
        except SurefootError:
            raise
        except Exception as error:
            raise step_failed(self._env(i), self._count, result, error) from error
        self._count += 1
        final, stats = self._next_episodes(out, ended, results) if ended else (None, {})
        self.view = View(obs=out, action_mask=self._mask(results))
        return Step(
            view=self.view,
            reward=reward,
            terminated=terminated,
            truncated=truncated,
            valid=self._every,
            final_obs=final,
            stats=stats,
        )

    def reset_streams(self, streams: np.ndarray) -> View | None:
        if self.view is None:
            return None
        obs = {name: part.copy() for name, part in self.view.obs.items()}
        mask = None if self.view.action_mask is None else self.view.action_mask.copy()
        for i in np.flatnonzero(streams):
            first, info = self._reset_one(int(i), None)
            self._reader.write(obs, int(i), first)
            if mask is not None:
                mask[i] = self._mask_row(int(i), first, info)
        self.view = View(obs=obs, action_mask=mask)
        return self.view

    def state(self) -> dict[str, Any]:
        if self.view is None or self.inexact is not None:
            return {"restart_seed": restart_seed(self._seed, self._count)}
        envs = [export_state(env) for env in self.envs]
        return {"seed": self._seed, "steps": self._count, "envs": envs, "view": view_to_state(self.view)}

    def set_state(self, state: dict[str, Any]) -> View:
        if "restart_seed" in state:
            return self.reset(int(state["restart_seed"]))
        check_env_count(state, self.name, self.num_envs)
        for env, saved in zip(self.envs, state["envs"], strict=True):
            import_state(env, saved)
        self._seed, self._count = int(state["seed"]), int(state["steps"])
        self.view = view_from_state(state["view"])
        self._find_masks({MASK: None} if self.view.action_mask is not None else {})
        return self.view

    @property
    def gym_spaces(self) -> tuple[gym.Space[Any], gym.Space[Any]]:
        """Gymnasium's observation and action space of one env."""
        return self.envs[0].observation_space, self.envs[0].action_space

    def render(self) -> np.ndarray | None:
        if self.envs[0].render_mode != "rgb_array" or self.view is None:
            return None
        return np.asarray(self.envs[0].render())

    def close(self) -> None:
        for env in self.envs:
            env.close()

    def _env(self, i: int) -> str:
        return f"env {self.first + i} of {self.name}"

    def _read_spaces(self, name: str | None) -> None:
        """Take the spaces of the first env, and check that the others have the same."""
        if not self.envs:
            raise EnvError("a world needs at least one env; env_fns is empty")
        first = self.envs[0]
        self.name = name or (first.spec.id if first.spec is not None else type(first.unwrapped).__name__)
        self.num_envs = len(self.envs)
        for which in ("observation_space", "action_space"):
            if not isinstance(getattr(first, which, None), gym.Space):
                raise SpaceError(f"{self.name} has no {which}; set self.{which} to a gymnasium space in __init__")
        for i, env in enumerate(self.envs):
            if env.observation_space != first.observation_space or env.action_space != first.action_space:
                raise SpaceError(
                    f"{self._env(i)} has the spaces {env.observation_space} and {env.action_space}, env {self.first} has "
                    f"{first.observation_space} and {first.action_space}; all envs of a world need the same spaces"
                )
        self.action = action_from_gym(first.action_space, self.name)
        self._choices = choices(self.action)
        self._reader = observation_reader(first.observation_space, self.name, masks=self._choices > 0)
        self.observation = self._reader.space
        self._plain, (shape, self._obs_dtype) = self._reader.plain, self._reader.first
        self._obs_shape = (self.num_envs, *shape)
        self._write_action = action_writer(first.action_space)
        form = former(first.action_space)
        # `env` is bound in the default argument: a closure would see the last env only.
        self._steps: list[Callable[[Any], Any]] = [
            env.step if form is None else lambda row, env=env, form=form: env.step(form(row)) for env in self.envs
        ]
        self._masked = False
        self._maskers: list[HasMasks] | None = None

    def _reset_one(self, i: int, seed: int | None) -> tuple[Any, dict[str, Any]]:
        try:
            result: Any = self.envs[i].reset(seed=seed)
            obs, info = result
        except Exception as error:
            raise EnvError(
                f"{self._env(i)} could not be reset after step {self._count}: {error!r}; reset(seed=…) must return "
                "(observation, info)"
            ) from error
        if not isinstance(info, dict):
            raise EnvError(
                f"reset of {self._env(i)} returned {type(info).__name__} as its info; reset(seed=…) must return "
                "(observation, info) with a dict"
            )
        return obs, info

    def _next_episodes(self, out: Arrays, ended: list[tuple[int, Any]], results: list[Any]) -> tuple[Arrays, Arrays]:
        """Return the true successors and the metrics of ended episodes; put the new episodes into `out` and `results`."""
        final = {name: part.copy() for name, part in out.items()}
        stats: Arrays = {}
        for i, info in ended:
            if not isinstance(info, dict):
                raise EnvError(f"{self._env(i)} ended with {type(info).__name__} as its info; step must return a dict")
            for key, name in REPORTS.items():
                if key in info:
                    try:
                        number = float(np.asarray(info[key]).item())
                    except (TypeError, ValueError) as error:
                        what = f"{self._env(i)} ended with info[{key!r}] = {info[key]!r}"
                        raise EnvError(f"{what}; it must be one number or bool") from error
                    stats.setdefault(name, np.full(self.num_envs, np.nan))[i] = number
            first = self._reset_one(i, None)
            self._reader.write(out, i, first[0])
            if self._masked:
                results[i] = first
        return final, {name: stats[name] for name in REPORTS.values() if name in stats}

    def _find_masks(self, info: dict[str, Any]) -> None:
        """Decide once per reset where masks come from: a part of the observation, a method, or the info."""
        self._maskers = None
        if self._choices and not self._reader.masked:
            maskers = [layer for env in self.envs if (layer := masker(env)) is not None]
            self._maskers = maskers if len(maskers) == self.num_envs else None
        self._masked = self._reader.masked or self._maskers is not None or (self._choices > 0 and MASK in info)

    def _mask(self, results: list[Any]) -> np.ndarray | None:
        if not self._masked:
            return None
        mask = np.stack([self._mask_row(i, obs, info) for i, (obs, info) in enumerate(results)])
        refuse_empty(mask, self.name, self.first)
        return mask

    def _mask_row(self, i: int, obs: Any, info: dict[str, Any]) -> np.ndarray:
        if self._reader.masked:
            value = obs[MASK]
        elif self._maskers is not None:
            value = self._maskers[i].action_masks()
        elif MASK in info:
            value = info[MASK]
        else:
            raise missing_mask(self._env(i))
        return read_mask(value, self._choices, f"stream {self.first + i} of {self.name}")


def written_actions(
    name: str, num_envs: int, action: np.ndarray, write: Callable[[np.ndarray], np.ndarray], count: int
) -> np.ndarray:
    """Return new actions [N, …] in the envs' dtype and shape; errors name the world and its step."""
    if len(action) != num_envs:
        raise ShapeError(f"{len(action)} actions for the {num_envs} streams of {name}; each needs one")
    try:
        return write(action)
    except SurefootError:
        raise
    except Exception as error:
        raise step_failed(f"env 0 of {name}", count, None, error) from error


def step_failed(env: str, count: int, result: Any, error: Exception) -> EnvError:
    """Return the error for a step that failed or returned `result`."""
    where = f"{env} at step {count + 1} since its reset"
    if isinstance(result, tuple) and len(result) == 4:
        return EnvError(
            f"{where} returned 4 values, like the old gym; return (observation, reward, terminated, truncated, "
            "info), or wrap it with shimmy's GymV21CompatibilityV0"
        )
    if isinstance(result, tuple) and len(result) == 5 and np.shape(result[1]) != ():
        return EnvError(
            f"{where} returned a reward of shape {list(np.shape(result[1]))}; return a number, as in float(reward)"
        )
    return EnvError(f"{where} failed: {error!r}")


def check_env_count(state: dict[str, Any], name: str, num_envs: int) -> None:
    """Raise `CheckpointIncompatible` if `state` is not of `num_envs` envs."""
    if len(state["envs"]) != num_envs:
        raise CheckpointIncompatible(
            f"the state is of {len(state['envs'])} envs of {name}, but this world has {num_envs}; use as many"
        )
