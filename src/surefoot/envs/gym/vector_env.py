"""`VectorWorld`: a Gymnasium vector env as a `World`, in every autoreset mode."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from surefoot.envs.api import Arrays, Step, View
from surefoot.envs.gym.nested_actions import former
from surefoot.envs.gym.spaces import (
    MASK,
    action_from_gym,
    action_writer,
    choices,
    column,
    missing_mask,
    observation_from_gym,
    observation_reader,
    read_mask,
    refuse_empty,
    success,
)
from surefoot.errors import EnvError, SurefootError

__all__ = ["HasState", "VectorWorld", "action_from_gym", "observation_from_gym"]


def build_env(build: Callable[[], Any]) -> Any:
    """Return what a user's function builds; raise `EnvError` if it fails."""
    try:
        return build()
    except SurefootError:
        raise
    except Exception as error:
        raise EnvError(f"the function that builds the env failed: {error!r}") from error


def restart_seed(seed: int, steps: int) -> int:
    """Return the seed for resuming without an exact state; it differs from `seed`, so episodes are not repeated."""
    return int(np.random.SeedSequence([seed, steps]).generate_state(1)[0])


def view_to_state(view: View) -> dict[str, Any]:
    mask = None if view.action_mask is None else view.action_mask.copy()
    return {"obs": {name: part.copy() for name, part in view.obs.items()}, "action_mask": mask}


def view_from_state(state: dict[str, Any]) -> View:
    mask = state["action_mask"]
    return View(
        obs={name: np.array(part) for name, part in state["obs"].items()},
        action_mask=None if mask is None else np.array(mask, np.bool_),
    )


@runtime_checkable
class HasState(Protocol):
    """An env that can save its state as a nested dict or list of arrays and JSON values, and restore it."""

    def get_state(self) -> Any: ...

    def set_state(self, state: Any, /) -> None: ...


class VectorWorld:
    """A `gymnasium.vector.VectorEnv` as a `World`, in the autoreset mode of its metadata.

    NEXT_STEP: the step after an end only resets, so its row is not `valid`; the view at the end is the true successor.
    SAME_STEP: the view is already the next episode's, the true successor comes from info["final_obs"].
    DISABLED: this class resets the streams that ended, so that it looks like SAME_STEP.
    """

    backend = "gymnasium"

    def __init__(self, env: VectorEnv[Any, Any, Any], name: str | None = None) -> None:
        self.env = env
        self.name = name or (env.spec.id if env.spec is not None else type(env.unwrapped).__name__)
        self.num_envs = env.num_envs
        self.mode = _autoreset_mode(env, self.name)
        self.action = action_from_gym(env.single_action_space, self.name)
        self._choices = choices(self.action)
        self._reader = observation_reader(env.single_observation_space, self.name, masks=self._choices > 0)
        self.observation = self._reader.space
        self._plain, (shape, self._obs_dtype) = self._reader.plain, self._reader.first
        self._obs_shape = (self.num_envs, *shape)
        self._every = np.ones(self.num_envs, np.bool_)
        self._every.flags.writeable = False
        # Gymnasium's own loop returns new arrays of the right dtypes: rewards and flags always, observations with `copy`.
        self._fresh = type(env) is SyncVectorEnv
        self._fresh_obs = type(env) is SyncVectorEnv and env.copy
        self._resets_later = self.mode is AutoresetMode.NEXT_STEP
        single = env.single_action_space
        self._write_action, self._form = action_writer(single, shared=self._fresh), former(single)
        self.inexact: str | None = None
        if not isinstance(env, HasState):
            self.inexact = (
                f"{self.name} runs inside {type(env.unwrapped).__name__}, which does not export its state; pass a function "
                "that builds one env, or a VectorEnv with get_state() and set_state(state), for an exact resume"
            )
        self._masked = self._some_wait = False
        self._waiting = np.zeros(self.num_envs, np.bool_)
        self._view: View | None = None
        self._seed = self._steps = 0
        self.info: dict[str, Any] = {}
        """The info of the last step."""

    def reset(self, seed: int) -> View:
        if self._waiting.any() and not self._forgets_waiting():
            self.env.step(self.env.action_space.sample())
        self._seed, self._steps = seed, 0
        self.env.action_space.seed(seed)
        self.env.single_action_space.seed(seed)
        obs, info = self.env.reset(seed=seed)
        self._masked = self._reader.masked or (self._choices > 0 and column(info, MASK, self.num_envs) is not None)
        self._waiting, self._some_wait = np.zeros(self.num_envs, np.bool_), False
        return self._publish(*self._read(obs, info))

    def step(self, action: np.ndarray) -> Step:
        if self._view is None:
            raise EnvError(f"{self.name} was stepped before its first reset; call reset(seed) once")
        written = self._write_action(action)
        nested = written if self._form is None else self._form(written)
        obs, reward, terminated, truncated, info = self._step_env(nested)
        if not self._fresh:
            reward = np.array(reward, np.float64)
            terminated, truncated = np.array(terminated, np.bool_), np.array(truncated, np.bool_)
        ended, valid = terminated | truncated, ~self._waiting if self._some_wait else self._every
        now, mask, present = self._read(obs, info)
        final, stats = None, {}
        some_ended = bool(np.count_nonzero(ended))
        if some_ended:
            truncated &= ~terminated
            stats = success(info, ended)
            final = self._split_ends(now, mask, present, info, ended)
        if self._resets_later:
            self._waiting, self._some_wait = ended, some_ended
        self._steps += 1
        self.info = info
        return Step(
            view=self._publish(now, mask, present),
            reward=reward,
            terminated=terminated,
            truncated=truncated,
            valid=valid,
            final_obs=final,
            stats=stats,
        )

    def reset_streams(self, streams: np.ndarray) -> View | None:
        # Only these vector envs are known to support options={"reset_mask": …}.
        known = isinstance(self.env.unwrapped, SyncVectorEnv | AsyncVectorEnv) and self._forgets_waiting()
        if self._view is None or not (known or self.mode is AutoresetMode.DISABLED):
            return None
        if not streams.any():
            return self._view
        obs, info = self.env.reset(options={"reset_mask": np.array(streams, np.bool_)})
        now, mask, present = self._read(obs, info)
        old = self._view
        for name, part in old.obs.items():
            now[name][~streams] = part[~streams]
        if mask is not None and old.action_mask is not None:
            mask[~streams], present[~streams] = old.action_mask[~streams], True
        self._waiting = self._waiting & ~streams
        return self._publish(now, mask, present)

    def state(self) -> dict[str, Any]:
        if self._view is None or not isinstance(self.env, HasState):
            return {"restart_seed": restart_seed(self._seed, self._steps)}
        return {
            "env": copy.deepcopy(self.env.get_state()),
            "seed": self._seed,
            "steps": self._steps,
            "waiting": self._waiting.copy(),
            "view": view_to_state(self._view),
        }

    def set_state(self, state: dict[str, Any]) -> View:
        if "restart_seed" in state or not isinstance(self.env, HasState):
            return self.reset(int(state.get("restart_seed", 0)))
        self.env.set_state(state["env"])
        self._seed, self._steps = int(state["seed"]), int(state["steps"])
        self._waiting = np.array(state["waiting"], np.bool_)
        self._some_wait = bool(self._waiting.any())
        self._view = view_from_state(state["view"])
        self._masked = self._view.action_mask is not None
        return self._view

    def render(self) -> np.ndarray | None:
        frames = self.env.render() if self.env.render_mode == "rgb_array" and self._view is not None else None
        return np.asarray(frames[0]) if frames is not None else None

    def close(self) -> None:
        self.env.close()

    def _step_env(self, action: np.ndarray) -> tuple[Any, ...]:
        try:
            result: tuple[Any, ...] = self.env.step(action)
        except Exception as error:
            raise EnvError(f"{self.name} failed at step {self._steps + 1} since its reset: {error}") from error
        if not isinstance(result[4], dict):
            raise EnvError(
                f"{self.name} returns its infos as {type(result[4]).__name__}, not as a dict; remove DictInfoToList"
            )
        return result

    def _read(self, obs: Any, info: dict[str, Any]) -> tuple[Arrays, np.ndarray | None, np.ndarray]:
        """Return observations, masks, and where a mask is present, [N] bool."""
        n = self.num_envs
        if self._plain and isinstance(obs, np.ndarray) and obs.shape == self._obs_shape:
            now = {"obs": obs if self._fresh_obs and obs.dtype == self._obs_dtype else np.array(obs, self._obs_dtype)}
        else:
            now = self._reader.empty(n)
            self._reader.write(now, slice(None), obs)
        if not self._masked:
            return now, None, self._every
        masks = (obs[MASK], np.ones(n, np.bool_)) if self._reader.masked else column(info, MASK, n)
        values, present = masks if masks is not None else ((), np.zeros(n, np.bool_))
        mask = np.ones((n, self._choices), np.bool_)
        for i in np.flatnonzero(present):
            mask[i] = read_mask(values[i], self._choices, f"stream {i} of {self.name}")
        return now, mask, present.copy()

    def _split_ends(
        self, now: Arrays, mask: np.ndarray | None, present: np.ndarray, info: dict[str, Any], ended: np.ndarray
    ) -> Arrays:
        """Return the true successors; change `now`, `mask` and `present` to what the next action is chosen from."""
        match self.mode:
            case AutoresetMode.NEXT_STEP:
                if mask is not None:
                    mask[ended], present[ended] = True, True  # the next action is ignored
                return now
            case AutoresetMode.SAME_STEP:
                return self._final_obs(now, info, ended)
            case AutoresetMode.DISABLED:
                final = {name: part.copy() for name, part in now.items()}
                obs, info = self.env.reset(options={"reset_mask": ended.copy()})
                first, first_mask, first_present = self._read(obs, info)
                for name, part in first.items():
                    now[name][ended] = part[ended]
                if mask is not None and first_mask is not None:
                    mask[ended], present[ended] = first_mask[ended], first_present[ended]
                return final

    def _final_obs(self, now: Arrays, info: dict[str, Any], ended: np.ndarray) -> Arrays:
        finals = column(info, "final_obs", self.num_envs)
        values, present = finals if finals is not None else ((), np.zeros(self.num_envs, np.bool_))
        if not present[ended].all():
            i = int(np.flatnonzero(ended & ~present)[0])
            raise EnvError(
                f"{self.name} has the autoreset mode SAME_STEP, but stream {i} ended without info['final_obs']; the true "
                "successor is needed to bootstrap a truncated episode"
            )
        final = {name: part.copy() for name, part in now.items()}
        if isinstance(values, dict):  # one batch per part of a Dict observation
            values = [{key: batch[i] for key, batch in values.items()} for i in range(self.num_envs)]
        for i in np.flatnonzero(ended):
            self._reader.write(final, int(i), values[i])
        return final

    def _publish(self, now: Arrays, mask: np.ndarray | None, present: np.ndarray) -> View:
        """Check the masks, and remember and return the view."""
        if mask is not None:
            if not present.all():
                raise missing_mask(f"stream {int(np.flatnonzero(~present)[0])} of {self.name}")
            refuse_empty(mask, self.name)
        self._view = View(obs=now, action_mask=mask)
        return self._view

    def _forgets_waiting(self) -> bool:
        """Return whether reset() clears a pending autoreset; Gymnasium's workers without shared memory do not."""
        base = self.env.unwrapped
        return not isinstance(base, AsyncVectorEnv) or bool(base.shared_memory)


def _autoreset_mode(env: VectorEnv[Any, Any, Any], name: str) -> AutoresetMode:
    mode = (env.metadata or {}).get("autoreset_mode")
    if isinstance(mode, AutoresetMode):
        return mode
    try:
        return AutoresetMode(mode)
    except ValueError:
        raise EnvError(
            f"{name} has metadata['autoreset_mode'] = {mode!r}, so it is unknown when it resets; set it to "
            "gymnasium.vector.AutoresetMode.NEXT_STEP, SAME_STEP or DISABLED, as the env behaves"
        ) from None
