"""What is wrong with an env, found by running it: each problem one sentence, with what would work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from surefoot.data.spaces import ActionSpace
from surefoot.envs.gym.single_envs import EnvsWorld
from surefoot.envs.gym.spaces import MASK, action_from_gym, choices, observation_from_gym, read_mask
from surefoot.envs.make import make_world
from surefoot.errors import EnvError, SpaceError, SurefootError

SingleEnv = gym.Env[Any, Any]

_LONG = 10_000
"""Steps after which an episode counts as endless."""
_LARGE = 100.0
"""Observations beyond this are large for a network that was not told so."""


@dataclass(frozen=True, slots=True)
class EnvFinding:
    """One problem."""

    level: Literal["error", "advice"]
    """An error makes training wrong or impossible; advice makes it better."""
    what: str
    fix: str

    def __str__(self) -> str:
        return f"{self.level}: {self.what}; {self.fix}"


def check_env(env: str | SingleEnv | Callable[[], SingleEnv], *, episodes: int = 3) -> list[EnvFinding]:
    """Run an env with random actions for some episodes and tell what is wrong with it; errors first. Raises nothing."""
    probe = _Probe()
    try:
        single = _single(env)
    except SurefootError as error:
        return [EnvFinding("error", str(error), "nothing else could be looked at")]
    try:
        if _check_spaces(probe, single):
            _run(probe, single, episodes)
    except Exception as error:
        # What it returns is so far off that looking at it failed; say so unless the reason was found already.
        if not any(finding.level == "error" for finding in probe.found):
            probe.error(f"looking at what it returns failed: {error!r}", "return arrays, numbers, bools and dicts")
    return sorted(probe.found, key=lambda finding: finding.level != "error")


def assert_env(env: str | SingleEnv | Callable[[], SingleEnv]) -> None:
    """Raise EnvError with the first error `check_env` finds."""
    for finding in check_env(env):
        if finding.level == "error":
            raise EnvError(f"{finding.what}; {finding.fix}")


@dataclass(slots=True)
class _Probe:
    found: list[EnvFinding] = field(default_factory=list[EnvFinding])
    largest: float = 0.0

    def error(self, what: str, fix: str, level: Literal["error", "advice"] = "error") -> None:
        # The same fix at another step with other numbers is the same problem.
        if all(fix != other.fix for other in self.found):
            self.found.append(EnvFinding(level, what, fix))

    def advise(self, what: str, fix: str) -> None:
        self.error(what, fix, "advice")


class _Stop(Exception):
    """The env cannot be run further; the probe says why."""


def _single(env: str | SingleEnv | Callable[[], SingleEnv]) -> SingleEnv:
    if isinstance(env, gym.Env):
        return cast(SingleEnv, env)
    if not isinstance(env, str) and callable(env):
        try:
            built: Any = env()
        except Exception as error:
            raise EnvError(f"the function that builds the env failed: {error!r}") from error
        if isinstance(built, gym.Env):
            return cast(SingleEnv, built)
        raise EnvError(f"the function that builds the env returned {type(built).__name__}, not a gymnasium.Env")
    try:
        world = make_world(env, backend="gymnasium")
    except SpaceError:
        return gym.make(env)  # its spaces are what there is to tell
    if isinstance(world, EnvsWorld):
        return world.envs[0]
    raise EnvError(f"{world.name} has {world.num_envs} streams; check the single env it is made of")


def _check_spaces(probe: _Probe, env: SingleEnv) -> bool:
    """Look at the spaces; False if it cannot be run with them."""
    name = type(env.unwrapped).__name__
    for which, convert in (("observation_space", observation_from_gym), ("action_space", action_from_gym)):
        space = getattr(env, which, None)
        if not isinstance(space, gym.Space):
            probe.error(f"{name} has no {which}", f"set self.{which} to a gymnasium space in __init__")
            continue
        try:
            convert(space, name)
        except SpaceError as error:
            what, _, fix = str(error).partition("; ")
            probe.error(what, fix)
    if probe.found:
        return False
    space = env.action_space
    if isinstance(space, spaces.Box):
        if not space.is_bounded():
            probe.advise(
                f"the action space {space} has no bounds",
                "give it low and high, so that a policy knows how far it can go",
            )
        elif not (np.allclose(space.low, -1.0) and np.allclose(space.high, 1.0)):
            probe.advise(
                f"the action space {space} is not symmetric around 0 with length 1",
                "gymnasium.wrappers.RescaleAction(env, -1.0, 1.0) makes it so, and learning easier",
            )
    return True


def _run(probe: _Probe, env: SingleEnv, episodes: int) -> None:
    try:
        action_space = action_from_gym(env.action_space)
        for episode in range(episodes):
            if not _episode(probe, env, action_space, seed=episode):
                break
        _check_repeats(probe, env)
        _check_render(probe, env)
    except _Stop:
        return
    if probe.largest > _LARGE:
        probe.advise(
            f"observations are as large as {probe.largest:.3g}",
            "let the observations be normalised, or scale them to about -1…1",
        )


def _episode(probe: _Probe, env: SingleEnv, action_space: ActionSpace, seed: int) -> bool:
    """Run one episode; False if it does not end."""
    env.action_space.seed(seed)
    obs, info = _reset(probe, env, seed)
    _check_obs(probe, env, obs, "reset")
    for t in range(_LONG):
        kept = [leaf.copy() for _, leaf in _leaves(obs)]
        last = obs
        obs, reward, terminated, truncated, info = _step(probe, env, _action(probe, env, action_space, obs, info))
        if any(not np.array_equal(old, new, equal_nan=True) for old, (_, new) in zip(kept, _leaves(last), strict=True)):
            probe.error(
                f"step {t + 1} changed the observation that was returned before it",
                "return a copy, such as self.obs.copy(), since learning keeps the old ones",
            )
        _check_obs(probe, env, obs, f"step {t + 1}")
        if not isinstance(reward, bool | int | float | np.bool_ | np.integer | np.floating):
            shape = f" of shape {list(reward.shape)}" if isinstance(reward, np.ndarray) else ""
            probe.error(f"the reward of step {t + 1} is a {type(reward).__name__}{shape}", "return float(reward)")
        elif not np.isfinite(reward):
            probe.error(f"the reward of step {t + 1} is {reward}", "return a finite number")
        for name, flag in (("terminated", terminated), ("truncated", truncated)):
            if not isinstance(flag, bool | np.bool_):
                probe.error(f"{name} is {flag!r} of type {type(flag).__name__}", f"return bool({name})")
        if terminated or truncated:
            return True
    probe.advise(
        f"an episode with random actions did not end within {_LONG} steps",
        "gymnasium.wrappers.TimeLimit(env, max_episode_steps=…) cuts it short",
    )
    return False


def _reset(probe: _Probe, env: SingleEnv, seed: int) -> tuple[Any, dict[str, Any]]:
    fix = "def reset(self, *, seed=None, options=None) must return (observation, info) with info a dict"
    try:
        answer: Any = env.reset(seed=seed)
    except Exception as error:
        probe.error(f"reset(seed={seed}) failed: {error!r}", fix)
        raise _Stop from error
    if not (isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], dict)):
        probe.error(f"reset returned {_shown(answer)}", fix)
        raise _Stop
    return answer


def _step(probe: _Probe, env: SingleEnv, action: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
    fix = "step must return (observation, reward, terminated, truncated, info) with info a dict"
    try:
        answer: Any = env.step(action)
    except Exception as error:
        probe.error(f"step({action!r}) failed: {error!r}", "it must accept every action of its action space")
        raise _Stop from error
    if not (isinstance(answer, tuple) and len(answer) == 5 and isinstance(answer[4], dict)):
        old = ", as the old gym did" if isinstance(answer, tuple) and len(answer) == 4 else ""
        probe.error(f"step returned {_shown(answer)}{old}", fix)
        raise _Stop
    return answer


def _shown(answer: Any) -> str:
    if isinstance(answer, tuple):
        return f"{len(answer)} values ({', '.join(type(part).__name__ for part in answer)})"
    return f"one {type(answer).__name__}"


def _action(probe: _Probe, env: SingleEnv, action_space: ActionSpace, obs: Any, info: dict[str, Any]) -> Any:
    """A random action, an allowed one where the env says which are."""
    value = obs.get(MASK) if isinstance(obs, dict) else None
    value = info.get(MASK) if value is None else value
    if value is None or not choices(action_space):
        return env.action_space.sample()
    try:
        mask = read_mask(value, choices(action_space), "this env")
    except EnvError as error:
        what, _, _ = str(error).partition("; ")
        probe.error(what, f"give it {choices(action_space)} entries, True for each choice that is allowed")
        raise _Stop from error
    if not mask.any():
        probe.error("the action mask allows no action at all", "a mask needs at least one True until the episode ends")
        raise _Stop
    if isinstance(env.action_space, spaces.Discrete):
        return env.action_space.sample(mask.astype(np.int8))
    return env.action_space.sample()


def _check_obs(probe: _Probe, env: SingleEnv, obs: Any, when: str) -> None:
    space = env.observation_space
    parts = space.spaces if isinstance(space, spaces.Dict) else {"": space}
    leaves = dict(_leaves(obs))
    if set(leaves) != set(parts):
        shown = sorted(leaves) if isinstance(obs, dict) else type(obs).__name__
        probe.error(
            f"{when} shows {shown}, the space has {sorted(parts)}", "return exactly the parts of observation_space"
        )
        raise _Stop
    for key, part in parts.items():
        _check_part(probe, part, leaves[key], f"{when} shows {key!r}" if key else f"{when} shows an observation")


def _check_part(probe: _Probe, space: gym.Space[Any], leaf: np.ndarray, shows: str) -> None:
    if leaf.shape != (space.shape or ()):
        probe.error(
            f"{shows} of shape {list(leaf.shape)}, the space says {list(space.shape or ())}",
            "make the array and observation_space agree in shape",
        )
        raise _Stop
    if leaf.dtype.kind not in "biuf":
        probe.error(f"{shows} of dtype {leaf.dtype}", "return a numpy array of numbers")
        raise _Stop
    if leaf.dtype.kind == "f" and not np.isfinite(leaf).all():
        probe.error(f"{shows} with NaN or infinity in it", "find where it divides by zero or overflows")
        return
    if space.dtype is not None and not np.can_cast(leaf.dtype, space.dtype, "same_kind" if leaf.ndim == 0 else "safe"):
        probe.advise(
            f"{shows} of dtype {leaf.dtype}, the space says {space.dtype}",
            "return the space's dtype, such as np.asarray(obs, self.observation_space.dtype)",
        )
    if isinstance(space, spaces.Box):
        inside = bool(((leaf >= space.low) & (leaf <= space.high)).all())
        if space.dtype != np.uint8 and leaf.size:
            probe.largest = max(probe.largest, float(np.abs(leaf.astype(np.float64)).max()))
    else:
        inside = bool(space.contains(leaf.astype(space.dtype) if leaf.ndim else int(leaf)))
    if not inside:
        span = f"{leaf.min()}…{leaf.max()}" if leaf.ndim else str(leaf)
        probe.error(f"{shows} outside its space ({span} in {space})", "widen the space, or clip what is returned")


def _check_repeats(probe: _Probe, env: SingleEnv, steps: int = 50) -> None:
    """The same seed and the same actions must give the same observations and rewards, twice over."""
    first, second = (_trace(probe, env, steps) for _ in range(2))
    for t, (a, b) in enumerate(zip(first, second, strict=False)):
        if len(a) != len(b) or any(not np.array_equal(x, y, equal_nan=True) for x, y in zip(a, b, strict=True)):
            where = "reset" if t == 0 else f"step {t}"
            probe.error(
                f"two runs with the same seed and actions differ at {where}",
                "call super().reset(seed=seed) and draw everything random from self.np_random",
            )
            return


def _trace(probe: _Probe, env: SingleEnv, steps: int) -> list[list[np.ndarray]]:
    action_space = action_from_gym(env.action_space)
    env.action_space.seed(7)
    obs, info = _reset(probe, env, 7)
    trace = [[leaf.copy() for _, leaf in _leaves(obs)]]
    for _ in range(steps):
        obs, reward, terminated, truncated, info = _step(probe, env, _action(probe, env, action_space, obs, info))
        trace.append([*(leaf.copy() for _, leaf in _leaves(obs)), np.asarray([reward], np.float64).ravel()])
        if terminated or truncated:
            break
    return trace


def _check_render(probe: _Probe, env: SingleEnv) -> None:
    if env.render_mode != "rgb_array":
        return
    fix = "render() must return a [height, width, 3] array of uint8 when render_mode is 'rgb_array'"
    try:
        frame: Any = env.render()
    except Exception as error:
        probe.error(f"render() failed: {error!r}", fix)
        return
    if not (isinstance(frame, np.ndarray) and frame.ndim == 3 and frame.shape[2] == 3 and frame.dtype == np.uint8):
        shape = f" {list(frame.shape)} of {frame.dtype}" if isinstance(frame, np.ndarray) else ""
        probe.error(f"render() returned {type(frame).__name__}{shape}", fix)


def _leaves(obs: Any) -> Iterator[tuple[str, np.ndarray]]:
    """(key, array) of an observation; the key of a plain one is empty. Arrays are the env's own, not copies."""
    if isinstance(obs, dict):
        for key, value in obs.items():
            yield str(key), np.asarray(value)
    else:
        yield "", np.asarray(obs)
