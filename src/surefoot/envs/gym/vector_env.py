"""Gymnasium's vector environments made into a `World`: every autoreset mode, and no guessing."""

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
    observation_from_gym,
    observation_reader,
    read_mask,
    refuse_empty,
    success,
)
from surefoot.errors import EnvError, SurefootError

__all__ = ["HasState", "VectorWorld", "action_from_gym", "observation_from_gym"]


def build_env(build: Callable[[], Any]) -> Any:
    """What a user's function builds; EnvError if it fails."""
    try:
        return build()
    except SurefootError:
        raise
    except Exception as error:
        raise EnvError(f"the function that builds the env failed: {error!r}") from error


def restart_seed(seed: int, steps: int) -> int:
    """Where to begin again if the exact state cannot be kept: not with the episodes that were already seen."""
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
    """An env that can say where it is, in a nested dict or list of arrays and JSON values, and go back there."""

    def get_state(self) -> Any: ...

    def set_state(self, state: Any, /) -> None: ...


class VectorWorld:
    """Any `gymnasium.vector.VectorEnv` as a World, in the autoreset mode its metadata names.

    NEXT_STEP: the step after an end only resets, so its row is not `valid`; the view at the end is the true successor.
    SAME_STEP: the view is already the next episode's, the true successor comes from info["final_obs"].
    DISABLED: the streams that ended are reset here, so that it looks like SAME_STEP.
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
        self._plain = all(part.key is None and part.encode is None for part in self._reader.parts.values())
        first = next(iter(self.observation.values()))
        self._seen, self._kind = (self.num_envs, *first.shape), np.dtype(first.dtype)
        self._every = np.ones(self.num_envs, np.bool_)
        self._every.flags.writeable = False
        self._fresh = type(env) is SyncVectorEnv
        """Rewards and flags are the caller's to keep, of the types they should have: Gymnasium's own loop copies them."""
        self._owned = type(env) is SyncVectorEnv and env.copy
        """Observations too."""
        self._resets_later = self.mode is AutoresetMode.NEXT_STEP
        single = env.single_action_space
        self._write_action, self._form = action_writer(single, shared=self._fresh), former(single)
        self.inexact: str | None = None
        if not isinstance(env, HasState):
            self.inexact = (
                f"{self.name} runs inside {type(env.unwrapped).__name__}, which does not export its state; a function "
                "that builds one env, or a VectorEnv with get_state() and set_state(state), would be exact"
            )
        self._masked = self._some_wait = False
        self._waiting = np.zeros(self.num_envs, np.bool_)
        self._view: View | None = None
        self._seed = self._steps = 0
        self.info: dict[str, Any] = {}
        """What the env said in its last step besides."""

    def reset(self, seed: int) -> View:
        if self._waiting.any() and not self._forgets_waiting():
            self.env.step(self.env.action_space.sample())
        self._seed, self._steps = seed, 0
        self.env.action_space.seed(seed)
        self.env.single_action_space.seed(seed)
        obs, info = self.env.reset(seed=seed)
        self._masked = self._reader.masked or (self._choices > 0 and column(info, MASK, self.num_envs) is not None)
        self._waiting, self._some_wait = np.zeros(self.num_envs, np.bool_), False
        return self._see(*self._look(obs, info))

    def step(self, action: np.ndarray) -> Step:
        if self._view is None:
            raise EnvError(f"{self.name} was stepped before its first reset; call reset(seed) once")
        written = self._write_action(action)
        taken = written if self._form is None else self._form(written)
        obs, reward, terminated, truncated, info = self._answer(taken)
        own = self._fresh  # copied already
        terminated = terminated if own else np.array(terminated, np.bool_)
        truncated = truncated if own else np.array(truncated, np.bool_)
        ended, valid = terminated | truncated, ~self._waiting if self._some_wait else self._every
        now, mask, given = self._look(obs, info)
        final, stats = None, {}
        some_ended = bool(np.count_nonzero(ended))
        if some_ended:
            truncated &= ~terminated
            stats = success(info, ended)
            final = self._turn(now, mask, given, info, ended)
        if self._resets_later:
            self._waiting, self._some_wait = ended, some_ended
        self._steps += 1
        self.info = info
        return Step(
            view=self._see(now, mask, given),
            reward=reward if own else np.array(reward, np.float64),
            terminated=terminated,
            truncated=truncated,
            valid=valid,
            final_obs=final,
            stats=stats,
        )

    def reset_streams(self, streams: np.ndarray) -> View | None:
        # Only these are known to understand options={"reset_mask": …}.
        known = isinstance(self.env.unwrapped, SyncVectorEnv | AsyncVectorEnv) and self._forgets_waiting()
        if self._view is None or not (known or self.mode is AutoresetMode.DISABLED):
            return None
        if not streams.any():
            return self._view
        obs, info = self.env.reset(options={"reset_mask": np.array(streams, np.bool_)})
        now, mask, given = self._look(obs, info)
        old = self._view
        for name, part in old.obs.items():
            now[name][~streams] = part[~streams]
        if mask is not None and old.action_mask is not None:
            mask[~streams], given[~streams] = old.action_mask[~streams], True
        self._waiting = self._waiting & ~streams
        return self._see(now, mask, given)

    def state(self) -> dict[str, Any]:
        if self._view is None or not isinstance(self.env, HasState):
            return {"restart_seed": restart_seed(self._seed, self._steps)}
        own = {
            "seed": self._seed,
            "steps": self._steps,
            "waiting": self._waiting.copy(),
            "view": view_to_state(self._view),
        }
        return {"env": copy.deepcopy(self.env.get_state()), **own}

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

    def _answer(self, action: np.ndarray) -> tuple[Any, ...]:
        try:
            answer: tuple[Any, ...] = self.env.step(action)
        except Exception as error:
            raise EnvError(f"{self.name} failed at step {self._steps + 1} since its reset: {error}") from error
        if not isinstance(answer[4], dict):
            raise EnvError(
                f"{self.name} gives its infos as {type(answer[4]).__name__}; take DictInfoToList away, a dict works"
            )
        return answer

    def _look(self, obs: Any, info: dict[str, Any]) -> tuple[Arrays, np.ndarray | None, np.ndarray]:
        """Observations, masks, and [N] bool where a mask was given."""
        n = self.num_envs
        if self._plain and isinstance(obs, np.ndarray) and obs.shape == self._seen:
            now = {"obs": obs if self._owned and obs.dtype == self._kind else np.array(obs, self._kind)}
        else:
            now = self._reader.empty(n)
            self._reader.write(now, slice(None), obs)
        if not self._masked:
            return now, None, self._every
        found = (obs[MASK], np.ones(n, np.bool_)) if self._reader.masked else column(info, MASK, n)
        values, given = found if found is not None else ((), np.zeros(n, np.bool_))
        mask = np.ones((n, self._choices), np.bool_)
        for i in np.flatnonzero(given):
            mask[i] = read_mask(values[i], self._choices, f"stream {i} of {self.name}")
        return now, mask, given.copy()

    def _turn(
        self, now: Arrays, mask: np.ndarray | None, given: np.ndarray, info: dict[str, Any], ended: np.ndarray
    ) -> Arrays:
        """The true successors; `now`, `mask` and `given` are changed to what the next action is chosen from."""
        match self.mode:
            case AutoresetMode.NEXT_STEP:
                if mask is not None:
                    mask[ended], given[ended] = True, True  # the next action is ignored
                return now
            case AutoresetMode.SAME_STEP:
                return self._final_obs(now, info, ended)
            case AutoresetMode.DISABLED:
                final = {name: part.copy() for name, part in now.items()}
                obs, info = self.env.reset(options={"reset_mask": ended.copy()})
                fresh, fresh_mask, fresh_given = self._look(obs, info)
                for name, part in fresh.items():
                    now[name][ended] = part[ended]
                if mask is not None and fresh_mask is not None:
                    mask[ended], given[ended] = fresh_mask[ended], fresh_given[ended]
                return final

    def _final_obs(self, now: Arrays, info: dict[str, Any], ended: np.ndarray) -> Arrays:
        found = column(info, "final_obs", self.num_envs)
        values, present = found if found is not None else ((), np.zeros(self.num_envs, np.bool_))
        if not present[ended].all():
            i = int(np.flatnonzero(ended & ~present)[0])
            raise EnvError(
                f"{self.name} says it resets in the same step, but stream {i} ended without info['final_obs']; "
                "the true successor is needed to tell a time-out from an end"
            )
        final = {name: part.copy() for name, part in now.items()}
        if isinstance(values, dict):  # one batch for each part of a Dict observation
            values = [{key: batch[i] for key, batch in values.items()} for i in range(self.num_envs)]
        for i in np.flatnonzero(ended):
            self._reader.write(final, int(i), values[i])
        return final

    def _see(self, now: Arrays, mask: np.ndarray | None, given: np.ndarray) -> View:
        if mask is not None:
            if not given.all():
                i = int(np.flatnonzero(~given)[0])
                raise EnvError(
                    f"stream {i} of {self.name} gave an {MASK} at its reset but gives none now; put one into every info "
                    "(all True where everything is allowed)"
                )
            refuse_empty(mask, self.name)
        self._view = View(obs=now, action_mask=mask)
        return self._view

    def _forgets_waiting(self) -> bool:
        """True if reset() clears a pending autoreset; Gymnasium's workers without shared memory keep theirs."""
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
            f"{name} has metadata['autoreset_mode'] = {mode!r}, so what follows the end of an episode is unknown; "
            "set it to gymnasium.vector.AutoresetMode.NEXT_STEP, SAME_STEP or DISABLED, whichever it really does"
        ) from None
