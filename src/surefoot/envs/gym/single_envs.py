"""N single Gymnasium envs stepped one after the other in this process, as one `World`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import gymnasium as gym
import numpy as np

from surefoot.envs.api import Arrays, Step, View
from surefoot.envs.gym.nested_actions import former
from surefoot.envs.gym.snapshot import export_state, import_state, why_inexact
from surefoot.envs.gym.spaces import (
    MASK,
    action_from_gym,
    action_writer,
    choices,
    observation_reader,
    read_mask,
    refuse_empty,
)
from surefoot.envs.gym.vector_env import restart_seed, view_from_state, view_to_state
from surefoot.errors import CheckpointIncompatible, EnvError, ShapeError, SpaceError, SurefootError

SingleEnv = gym.Env[Any, Any]
REPORTS = {"is_success": "success", "whole_return": "whole_return"}
"""What the info at the end of an episode may say, and the stat that it becomes. An env that tells `whole_return` does so
at every end, NaN where the whole goes on."""


@runtime_checkable
class HasMasks(Protocol):
    """An env that says by a method what is allowed now, as sb3-contrib asks for it."""

    def action_masks(self) -> Any: ...


class EnvsWorld:
    """Envs built by `env_fns`; a stream that ends begins its next episode in the same step.

    `first` is what errors call env 0, where these envs are a share of a larger world.
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
            self._meet(name)
        except BaseException:
            self.close()
            raise
        self._reasons = [why_inexact(env) for env in self.envs]
        reason = next((reason for reason in self._reasons if reason is not None), None)
        self.inexact = None if reason is None else f"{self.name}: {reason}"
        self._view: View | None = None
        self._seed = self._count = 0
        self._every = np.ones(self.num_envs, np.bool_)
        self._every.flags.writeable = False

    def reset(self, seed: int) -> View:
        obs = self._reader.empty(self.num_envs)
        seen: list[Any] = []
        for i, env in enumerate(self.envs):
            env.action_space.seed(seed + i)
            first, info = self._reset_one(i, seed + i)
            self._check_shape(i, first)
            self._reader.write(obs, i, first)
            seen.append((first, info))
        self._seed, self._count = seed, 0
        self._find_masks(seen[0][1])
        self._view = View(obs=obs, action_mask=self._mask(seen))
        return self._view

    def step(self, action: np.ndarray) -> Step:
        if self._view is None:
            raise EnvError(f"{self.name} was stepped before its first reset; call reset(seed) once")
        return self.take(written_actions(self, action, self._write_action, self._count))

    def take(self, actions: np.ndarray) -> Step:
        """`step` with actions in the envs' own dtype and shape."""
        n = self.num_envs
        if self._plain:
            rows = np.empty(self._seen, self._kind)
            out = {"obs": rows}
        else:
            rows, out = None, self._reader.empty(n)
        reward = np.empty(n)
        terminated = np.zeros(n, np.bool_)
        truncated = np.zeros(n, np.bool_)
        seen: list[Any] = []
        ended: list[tuple[int, Any]] = []
        i, answer = 0, None
        try:
            for i, (step, act) in enumerate(zip(self._steps, actions, strict=True)):
                answer = step(act)
                obs, reward[i], over, cut, info = answer
                if rows is not None:
                    rows[i] = obs
                else:
                    self._reader.write(out, i, obs)
                if over or cut:
                    terminated[i] = over
                    truncated[i] = not over
                    ended.append((i, info))
                if self._masked:
                    seen.append((obs, info))
        except SurefootError:
            raise
        except Exception as error:
            raise step_failed(self, self.first + i, self._count, answer, error) from error
        self._count += 1
        final, stats = self._next_episodes(out, ended, seen) if ended else (None, {})
        self._view = View(obs=out, action_mask=self._mask(seen))
        return Step(
            view=self._view,
            reward=reward,
            terminated=terminated,
            truncated=truncated,
            valid=self._every,
            final_obs=final,
            stats=stats,
        )

    def reset_streams(self, streams: np.ndarray) -> View | None:
        if self._view is None:
            return None
        obs = {name: part.copy() for name, part in self._view.obs.items()}
        mask = None if self._view.action_mask is None else self._view.action_mask.copy()
        for i in np.flatnonzero(streams):
            first, info = self._reset_one(int(i), None)
            self._reader.write(obs, int(i), first)
            if mask is not None:
                mask[i] = self._mask_row(int(i), first, info)
        self._view = View(obs=obs, action_mask=mask)
        return self._view

    def state(self) -> dict[str, Any]:
        if self._view is None or self.inexact is not None:
            return {"restart_seed": restart_seed(self._seed, self._count)}
        envs = [export_state(env) for env in self.envs]
        return {"seed": self._seed, "steps": self._count, "envs": envs, "view": view_to_state(self._view)}

    def set_state(self, state: dict[str, Any]) -> View:
        if "restart_seed" in state:
            return self.reset(int(state["restart_seed"]))
        if len(state["envs"]) != self.num_envs:
            raise CheckpointIncompatible(
                f"the state was kept for {len(state['envs'])} envs of {self.name}, but there are {self.num_envs} here"
            )
        for env, kept in zip(self.envs, state["envs"], strict=True):
            import_state(env, kept)
        self._seed, self._count = int(state["seed"]), int(state["steps"])
        self._view = view_from_state(state["view"])
        self._find_masks({MASK: None} if self._view.action_mask is not None else {})
        return self._view

    @property
    def gym_spaces(self) -> tuple[gym.Space[Any], gym.Space[Any]]:
        """What an env sees and how it acts, in Gymnasium's words."""
        return self.envs[0].observation_space, self.envs[0].action_space

    def render(self) -> np.ndarray | None:
        if self.envs[0].render_mode != "rgb_array" or self._view is None:
            return None
        return np.asarray(self.envs[0].render())

    def close(self) -> None:
        for env in self.envs:
            env.close()

    def _meet(self, name: str | None) -> None:
        """Take the spaces of the first env, and see that the others have the same."""
        if not self.envs:
            raise EnvError("a world needs at least one env; env_fns is empty")
        first = self.envs[0]
        self.name = name or (first.spec.id if first.spec is not None else type(first.unwrapped).__name__)
        self.num_envs = len(self.envs)
        for i, env in enumerate(self.envs):
            if env.observation_space != first.observation_space or env.action_space != first.action_space:
                raise SpaceError(
                    f"env {self.first + i} of {self.name} sees {env.observation_space} and acts in "
                    f"{env.action_space}, env {self.first} {first.observation_space} and {first.action_space}; "
                    "all envs of a world need the same spaces"
                )
        self.action = action_from_gym(first.action_space, self.name)
        self._choices = choices(self.action)
        self._reader = observation_reader(first.observation_space, self.name, masks=self._choices > 0)
        self.observation = self._reader.space
        self._plain = all(part.key is None and part.encode is None for part in self._reader.parts.values())
        first_box = next(iter(self.observation.values()))
        self._seen, self._kind = (self.num_envs, *first_box.shape), np.dtype(first_box.dtype)
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
            answer: Any = self.envs[i].reset(seed=seed)
            obs, info = answer
        except Exception as error:
            raise EnvError(
                f"env {self.first + i} of {self.name} could not be reset after step {self._count}: {error!r}; reset(seed=…) "
                "must return (observation, info)"
            ) from error
        if not isinstance(info, dict):
            raise EnvError(
                f"reset of env {self.first + i} of {self.name} returned {type(info).__name__} as its info; "
                "reset(seed=…) must return (observation, info) with a dict"
            )
        return obs, info

    def _check_shape(self, i: int, obs: Any) -> None:
        for name, part in self._reader.parts.items():
            shape = np.shape(obs if part.key is None else obs[part.key])
            if shape != part.shape:
                raise EnvError(
                    f"env {self.first + i} of {self.name} shows {name!r} as {list(shape)}, but its space says "
                    f"{list(part.shape)}; make the two agree (surefoot.check_env looks for more)"
                )

    def _next_episodes(self, out: Arrays, ended: list[tuple[int, Any]], seen: list[Any]) -> tuple[Arrays, Arrays]:
        """The true successors and what the ended episodes report; `out` and `seen` change to the new episodes."""
        final = {name: part.copy() for name, part in out.items()}
        stats: Arrays = {}
        for i, info in ended:
            for said, name in REPORTS.items():
                if said in info:
                    stats.setdefault(name, np.full(self.num_envs, np.nan))[i] = float(info[said])
            first = self._reset_one(i, None)
            self._reader.write(out, i, first[0])
            if self._masked:
                seen[i] = first
        return final, {name: stats[name] for name in REPORTS.values() if name in stats}

    def _find_masks(self, info: dict[str, Any]) -> None:
        """Decide once, at reset, who says what is allowed: a part of the observation, a method, or the info."""
        self._maskers = None
        if self._choices and not self._reader.masked:
            maskers = [layer for env in self.envs if (layer := _masker(env)) is not None]
            self._maskers = maskers if len(maskers) == self.num_envs else None
        self._masked = self._reader.masked or self._maskers is not None or (self._choices > 0 and MASK in info)

    def _mask(self, seen: list[Any]) -> np.ndarray | None:
        if not self._masked:
            return None
        mask = np.stack([self._mask_row(i, obs, info) for i, (obs, info) in enumerate(seen)])
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
            raise EnvError(
                f"env {self.first + i} of {self.name} gave an {MASK} at its reset but gives none now; put one into every info "
                "(all True where everything is allowed)"
            )
        return read_mask(value, self._choices, f"stream {self.first + i} of {self.name}")


class _Steps(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def num_envs(self) -> int: ...


def written_actions(
    world: _Steps, action: np.ndarray, write: Callable[[np.ndarray], np.ndarray], count: int
) -> np.ndarray:
    """Fresh actions [N, …] in the envs' own dtype and shape; an error names the world and its step."""
    if len(action) != world.num_envs:
        raise ShapeError(f"{len(action)} actions for the {world.num_envs} streams of {world.name}; each needs one")
    try:
        return write(action)
    except SurefootError:
        raise
    except Exception as error:
        raise step_failed(world, 0, count, None, error) from error


def step_failed(world: _Steps, env: int, count: int, answer: Any, error: Exception) -> EnvError:
    where = f"env {env} of {world.name} at step {count + 1} since its reset"
    if isinstance(answer, tuple) and len(answer) == 4:
        return EnvError(
            f"{where} returned 4 values, as the old gym did; return (observation, reward, terminated, truncated, "
            "info), or wrap it with shimmy's GymV21CompatibilityV0"
        )
    return EnvError(f"{where} failed: {error!r}")


def _masker(env: SingleEnv) -> HasMasks | None:
    """The outermost layer of an env that has `action_masks()`."""
    while True:
        if isinstance(env, HasMasks):
            return env
        if not isinstance(env, gym.Wrapper):
            return None
        env = env.env
