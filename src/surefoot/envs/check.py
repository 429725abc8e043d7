"""`check_env`: find problems of an env by running it. Each finding is one sentence with a fix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from surefoot.envs.gym.single_envs import EnvsWorld
from surefoot.envs.gym.spaces import MASK, action_from_gym, choices, observation_from_gym, read_mask
from surefoot.envs.gym.vector_env import build_env
from surefoot.envs.make import make_world
from surefoot.errors import EnvError, SpaceError, SurefootError

SingleEnv = gym.Env[Any, Any]

# Ten times the time limit of MuJoCo's envs: an env without an end is found within seconds.
_MAX_STEPS = 10_000
# A network with standard initialisation and inputs beyond this saturates its tanh layers from the start.
_LARGE = 100.0


@dataclass(frozen=True, slots=True)
class EnvFinding:
    """One problem of an env."""

    level: Literal["error", "advice"]
    """An error makes training wrong or impossible; following advice makes it better."""
    what: str
    fix: str

    def __str__(self) -> str:
        return f"{self.level}: {self.what}; {self.fix}"


def check_env(env: str | SingleEnv | Callable[[], SingleEnv], *, episodes: int = 3) -> list[EnvFinding]:
    """Run an env with random actions and return its problems, errors first. Never raise.

    Checked are spaces, what reset, step and render return, reproducibility, and whether episodes end.

    Args:
        env: An id, a `gymnasium.Env` or a function that builds one.
        episodes: Number of episodes to run.
    """
    probe = _Probe()
    try:
        single = _single(env)
    except SurefootError as error:
        return [EnvFinding("error", str(error), "nothing else could be checked")]
    try:
        if _check_spaces(probe, single):
            # Stop at the first episode that does not end: the next one would not either.
            all(_episode(probe, single, seed) for seed in range(episodes))
            _check_repeats(probe, single)
            _check_render(probe, single)
            if probe.largest > _LARGE:
                fix = "normalize the observations, or scale them to about -1…1"
                probe.advise(f"observations are as large as {probe.largest:.3g}", fix)
    except _Stop:
        pass
    except Exception as error:
        # The env returned something that the checks cannot handle; report that unless the reason was found already.
        if not any(finding.level == "error" for finding in probe.findings):
            probe.error(f"checking what it returns failed: {error!r}", "return arrays, numbers, bools and dicts")
    return sorted(probe.findings, key=lambda finding: finding.level != "error")


def assert_env(env: str | SingleEnv | Callable[[], SingleEnv]) -> None:
    """Raise `EnvError` for the first error that `check_env` finds in `env`."""
    for finding in check_env(env):
        if finding.level == "error":
            raise EnvError(f"{finding.what}; {finding.fix}")


class _Stop(Exception):
    """The env cannot be run further; the probe holds the reason."""


@dataclass(slots=True)
class _Probe:
    findings: list[EnvFinding] = field(default_factory=list[EnvFinding])
    largest: float = 0.0

    def error(self, what: str, fix: str, level: Literal["error", "advice"] = "error") -> None:
        # The same fix at another step with other numbers is the same problem.
        if all(fix != other.fix for other in self.findings):
            self.findings.append(EnvFinding(level, what, fix))

    def advise(self, what: str, fix: str) -> None:
        self.error(what, fix, "advice")

    def stop(self, what: str, fix: str) -> _Stop:
        """Record an error and return the exception that ends the run."""
        self.error(what, fix)
        return _Stop()


def _single(env: str | SingleEnv | Callable[[], SingleEnv]) -> SingleEnv:
    if isinstance(env, gym.Env):
        return cast(SingleEnv, env)
    if not isinstance(env, str) and callable(env):
        built = build_env(env)
        if isinstance(built, gym.Env):
            return cast(SingleEnv, built)
        raise EnvError(f"the function that builds the env returned {type(built).__name__}, not a gymnasium.Env")
    try:
        world = make_world(env, backend="gymnasium")
    except SpaceError:
        return gym.make(env)  # `_check_spaces` reports what is wrong with its spaces
    if isinstance(world, EnvsWorld):
        return world.envs[0]
    raise EnvError(f"{world.name} has {world.num_envs} streams; check the single env it is made of")


def _check_spaces(probe: _Probe, env: SingleEnv) -> bool:
    """Return whether the env can be run with its spaces."""
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
    if probe.findings:
        return False
    space = env.action_space
    if isinstance(space, spaces.Box):
        if not space.is_bounded():
            fix = "set low and high, so that a policy knows its range"
            probe.advise(f"the action space {space} has no bounds", fix)
        elif not (np.allclose(space.low, -1.0) and np.allclose(space.high, 1.0)):
            fix = "gymnasium.wrappers.RescaleAction(env, -1.0, 1.0) makes learning easier"
            probe.advise(f"the action space {space} is not [-1, 1]", fix)
    return True


def _episode(probe: _Probe, env: SingleEnv, seed: int) -> bool:
    """Run one episode; return False if it does not end."""
    env.action_space.seed(seed)
    obs, info = _reset(probe, env, seed)
    _check_obs(probe, env, obs, "reset")
    for t in range(_MAX_STEPS):
        copies = [leaf.copy() for leaf in _leaves(obs).values()]
        last = obs
        obs, reward, terminated, truncated, info = _step(probe, env, _action(probe, env, obs, info))
        leaves = _leaves(last).values()
        if any(not np.array_equal(old, new, equal_nan=True) for old, new in zip(copies, leaves, strict=True)):
            fix = "return a copy, such as self.obs.copy(), because learning keeps the old ones"
            probe.error(f"step {t + 1} changed the observation that was returned before it", fix)
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
    fix = "gymnasium.wrappers.TimeLimit(env, max_episode_steps=…) truncates it"
    probe.advise(f"an episode with random actions did not end within {_MAX_STEPS} steps", fix)
    return False


def _reset(probe: _Probe, env: SingleEnv, seed: int) -> tuple[Any, dict[str, Any]]:
    fix = "def reset(self, *, seed=None, options=None) must return (observation, info) with info a dict"
    return _call(probe, f"reset(seed={seed})", lambda: env.reset(seed=seed), 2, fix, fix)


def _step(probe: _Probe, env: SingleEnv, action: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
    fix = "step must return (observation, reward, terminated, truncated, info) with info a dict"
    must = "it must accept every action of its action space"
    return _call(probe, f"step({action!r})", lambda: env.step(action), 5, fix, must)


def _call(probe: _Probe, what: str, call: Callable[[], Any], size: int, fix: str, fix_failure: str) -> Any:
    """Return the result of a call that must be a tuple of `size` values, the last of them a dict."""
    try:
        result = call()
    except Exception as error:
        raise probe.stop(f"{what} failed: {error!r}", fix_failure) from error
    if isinstance(result, tuple) and len(result) == size and isinstance(result[-1], dict):
        return result
    shown = f"one {type(result).__name__}"
    if isinstance(result, tuple):
        shown = f"{len(result)} values ({', '.join(type(part).__name__ for part in result)})"
        shown += ", like the old gym" if (size, len(result)) == (5, 4) else ""
    probe.error(f"{what.partition('(')[0]} returned {shown}", fix)
    raise _Stop


def _action(probe: _Probe, env: SingleEnv, obs: Any, info: dict[str, Any]) -> Any:
    """Return a random action, an allowed one if the env has an action mask."""
    value = obs.get(MASK) if isinstance(obs, dict) else None
    value = info.get(MASK) if value is None else value
    if value is None:
        return env.action_space.sample()
    size = choices(action_from_gym(env.action_space))
    if not size:
        return env.action_space.sample()
    try:
        mask = read_mask(value, size, "this env")
    except EnvError as error:
        raise probe.stop(
            str(error).partition("; ")[0], f"return {size} entries, True for each allowed choice"
        ) from error
    if not mask.any():
        raise probe.stop(
            "the action mask allows no action at all", "a mask needs at least one True until the episode ends"
        )
    if isinstance(env.action_space, spaces.Discrete):
        return env.action_space.sample(mask.astype(np.int8))
    return env.action_space.sample()


def _check_obs(probe: _Probe, env: SingleEnv, obs: Any, when: str) -> None:
    space = env.observation_space
    parts = space.spaces if isinstance(space, spaces.Dict) else {"": space}
    leaves = _leaves(obs)
    if set(leaves) != set(parts):
        shown = sorted(leaves) if isinstance(obs, dict) else type(obs).__name__
        fix = "return exactly the parts of observation_space"
        raise probe.stop(f"{when} returns {shown}, the space has {sorted(parts)}", fix)
    for key, part in parts.items():
        leaf = leaves[key]
        returns = f"{when} returns {key!r}" if key else f"{when} returns an observation"
        if leaf.shape != (part.shape or ()):
            shapes = f"of shape {list(leaf.shape)}, the space has {list(part.shape or ())}"
            raise probe.stop(f"{returns} {shapes}", "make the array and observation_space agree in shape")
        if leaf.dtype.kind not in "biuf":
            raise probe.stop(f"{returns} of dtype {leaf.dtype}", "return a numpy array of numbers")
        if leaf.dtype.kind == "f" and not np.isfinite(leaf).all():
            probe.error(f"{returns} with NaN or infinity in it", "find where it divides by zero or overflows")
            continue
        casting = "same_kind" if leaf.ndim == 0 else "safe"
        if part.dtype is not None and not np.can_cast(leaf.dtype, part.dtype, casting):
            fix = "return the space's dtype, such as np.asarray(obs, self.observation_space.dtype)"
            probe.advise(f"{returns} of dtype {leaf.dtype}, the space has {part.dtype}", fix)
        if isinstance(part, spaces.Box):
            inside = bool(((leaf >= part.low) & (leaf <= part.high)).all())
            if part.dtype != np.uint8 and leaf.size:
                probe.largest = max(probe.largest, float(np.abs(leaf.astype(np.float64)).max()))
        else:
            inside = bool(part.contains(leaf.astype(part.dtype) if leaf.ndim else int(leaf)))
        if not inside:
            values = f"{leaf.min()}…{leaf.max()}" if leaf.ndim else str(leaf)
            probe.error(f"{returns} outside its space ({values} in {part})", "widen the space, or clip the observation")


def _check_repeats(probe: _Probe, env: SingleEnv, steps: int = 50) -> None:
    """Check that two runs with the same seed and actions give the same observations and rewards."""
    traces: list[list[list[np.ndarray]]] = []
    for _ in range(2):
        env.action_space.seed(7)
        obs, info = _reset(probe, env, 7)
        trace = [[leaf.copy() for leaf in _leaves(obs).values()]]
        traces.append(trace)
        for _ in range(steps):
            obs, reward, terminated, truncated, info = _step(probe, env, _action(probe, env, obs, info))
            trace.append([*(x.copy() for x in _leaves(obs).values()), np.asarray([reward], np.float64).ravel()])
            if terminated or truncated:
                break
    for t, (a, b) in enumerate(zip(*traces, strict=False)):
        if len(a) != len(b) or any(not np.array_equal(x, y, equal_nan=True) for x, y in zip(a, b, strict=True)):
            fix = "call super().reset(seed=seed) and draw everything random from self.np_random"
            where = f"step {t}" if t else "reset"
            probe.error(f"two runs with the same seed and actions differ at {where}", fix)
            return


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


def _leaves(obs: Any) -> dict[str, np.ndarray]:
    """Return {key: array} of an observation, not copied; the key of an observation that is no dict is empty."""
    if isinstance(obs, dict):
        return {str(key): np.asarray(value) for key, value in obs.items()}
    return {"": np.asarray(obs)}
