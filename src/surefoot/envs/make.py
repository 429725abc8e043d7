"""`make_world`: make a world from an id, an env, a function that builds one, a vector env or a PettingZoo env."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, cast, runtime_checkable

import gymnasium as gym
from gymnasium.vector import VectorEnv

from surefoot.envs.agents.pettingzoo import AgentsWorld, agents_world, is_many_agents
from surefoot.envs.agents.stepping import ParallelEnv, TurnEnv
from surefoot.envs.api import World
from surefoot.envs.builtin.native import load_library
from surefoot.envs.gym.atari import game_of, is_atari
from surefoot.envs.gym.envpool import PoolWorld, pool_options
from surefoot.envs.gym.mujoco import IN_LIBMUJOCO, mujoco_world
from surefoot.envs.gym.single_envs import EnvsWorld
from surefoot.envs.gym.vector_env import VectorWorld, build_env
from surefoot.envs.ids import is_library
from surefoot.envs.register import SpecBuilder, own_worlds, register_envs, registered_spec
from surefoot.envs.workers.placement import Workers, place
from surefoot.envs.workers.process_world import ProcessWorld
from surefoot.errors import ConfigError, EnvError, UnknownEnv

Backend = Literal["auto", "surefoot", "gymnasium", "envpool"]
BACKENDS: tuple[Backend, ...] = ("auto", "surefoot", "gymnasium", "envpool")
SingleEnv = gym.Env[Any, Any]
EnvLike = str | SingleEnv | Callable[[], Any] | VectorEnv[Any, Any, Any] | World | ParallelEnv | TurnEnv
Wrap = Callable[[SingleEnv], SingleEnv]


@runtime_checkable
class _AnyWorld(World, Protocol):
    """`World` with `isinstance` support."""


def make_world(
    env: EnvLike,
    num_envs: int = 1,
    *,
    backend: Backend = "auto",
    env_kwargs: Mapping[str, Any] | None = None,
    wrappers: Sequence[Wrap] = (),
    max_episode_steps: int | None = None,
    allow_import: bool = False,
    workers: Workers = 0,
) -> World:
    """Return a world of `num_envs` copies of `env`; `backend_of` and `placement_of` report what was chosen.

    Args:
        env: An id, a `gymnasium.Env`, a PettingZoo env, a function that builds one, a `VectorEnv` or a `World`. The id may
            name a module to import first ("module:Name-v0") or an environment in C ("./my_world.so").
        num_envs: Number of copies. Each copy of a PettingZoo env with A agents is A streams; see `agents_world`.
        backend: "auto" takes the built-in vectorised implementation of an id where there is one, unless `env_kwargs`,
            `wrappers` or `max_episode_steps` need Gymnasium's env. Atari games get PPO's usual preprocessing
            (`surefoot.envs.gym.atari`). "gymnasium" takes Gymnasium's env, "envpool" EnvPool's, "surefoot" the built-in one.
        env_kwargs: Keyword arguments for `gymnasium.make`; only for ids.
        wrappers: Functions that wrap each env, applied in order.
        max_episode_steps: Time limit that replaces the one of the id.
        allow_import: Allow ids that run code: "module:Name-v0" and libraries in C.
        workers: Processes that step the envs besides this one, with the same digits; "auto" measures whether they are
            faster. Built-in environments step all streams in one call and take none, except MuJoCo's, where these are
            threads.
    """
    if num_envs < 1:
        raise ConfigError(f"num_envs is {num_envs}; a world needs at least 1")
    if backend not in BACKENDS:
        raise ConfigError(f"backend is {backend!r}; it must be 'auto', 'surefoot', 'gymnasium' or 'envpool'")
    if workers != "auto" and workers < 0:
        raise ConfigError(f"workers is {workers}; it must be 'auto' or at least 0")
    changed = bool(env_kwargs) or bool(wrappers) or max_episode_steps is not None
    if isinstance(env, str):
        if is_library(env):
            return _from_library(env, num_envs, backend, changed, allow_import)
        if backend == "envpool":
            return PoolWorld(env, num_envs, pool_options(env_kwargs, bool(wrappers), max_episode_steps, workers))
        if backend in ("auto", "surefoot") and is_atari(env):
            game = game_of(registered_spec(env), env_kwargs or {}, max_episode_steps)
            return _placed(_Wrapped(game, tuple(wrappers), None), num_envs, env, workers, "surefoot")
        known = env in IN_LIBMUJOCO or env in own_worlds()
        if backend == "surefoot" or (backend == "auto" and not changed and known):
            return _built_in(env, num_envs, backend, changed, workers)
        build = _Wrapped(_builder(env, dict(env_kwargs or {}), max_episode_steps, allow_import), tuple(wrappers), None)
        return _placed(build, num_envs, env.rpartition(":")[2], workers)
    if backend in ("surefoot", "envpool"):
        raise ConfigError(f"backend={backend!r} needs the id of one of its environments, not {type(env).__name__}")
    if isinstance(env, VectorEnv | _AnyWorld):
        return _existing(env, num_envs, changed, workers)
    if env_kwargs:
        raise ConfigError(f"env_kwargs only go with an id; pass them to the function that builds the {_kind(env)}")
    if isinstance(env, gym.Env):
        kind = _kind(env.unwrapped)
        if num_envs > 1:
            raise ConfigError(
                f"{num_envs} streams cannot share one {kind}; pass a function that builds one, such as lambda: {kind}()"
            )
        if workers not in ("auto", 0):
            raise ConfigError(
                f"workers={workers} cannot step a {kind} that exists in this process; pass its id or a function that builds one"
            )
        single = cast(SingleEnv, env)
        return EnvsWorld([_Wrapped(lambda: single, tuple(wrappers), max_episode_steps)])
    if is_many_agents(env):
        return _many_agents(env, num_envs, changed, workers)
    if not callable(env):
        raise EnvError(_not_an_env(env))
    build = _Wrapped(_Fresh(env), tuple(wrappers), max_episode_steps)
    try:
        # "auto" is 0 for a function: calling it once more to measure may have side effects.
        return _placed(build, num_envs, None, 0 if workers == "auto" else workers)
    except _ManyAgents as agents:
        built = iter([agents.env])  # the first call has built one already
        return _many_agents(lambda: next(built, None) or env(), num_envs, changed, workers)


def make_streams(env: EnvLike, streams: int, **options: Any) -> World:
    """Return `make_world` with about `streams` streams: of an env with A agents, streams // A copies, at least one."""
    world = make_world(env, streams, **options)
    if not isinstance(world, AgentsWorld) or world is env or world.num_envs == streams:
        return world
    copies = max(1, streams // len(world.agents))
    world.close()
    return make_world(env, copies, **options)


def backend_of(world: World) -> str:
    """Return what steps the streams: "gymnasium", "envpool", "pettingzoo", or "surefoot" for any other world."""
    if isinstance(world, EnvsWorld | ProcessWorld | VectorWorld | PoolWorld | AgentsWorld):
        return world.backend
    return "surefoot"


def placement_of(world: World) -> str | None:
    """Return the reason why the envs run in this process or in workers; None where there was no choice."""
    return world.placed if isinstance(world, EnvsWorld | ProcessWorld) else None


def _placed(
    build: Callable[[], SingleEnv], num_envs: int, name: str | None, workers: Workers, backend: str = "gymnasium"
) -> EnvsWorld | ProcessWorld:
    count, why = place(build, num_envs) if workers == "auto" else (workers, None)
    if count == 0:
        world = EnvsWorld([build] * num_envs, name)
        world.placed = why
    else:
        world = ProcessWorld([build] * num_envs, count, name)
        world.placed = why or f"envs in {world.workers + 1} processes, as requested"
    world.backend = backend
    return world


def _built_in(name: str, num_envs: int, backend: Backend, changed: bool, workers: Workers) -> World:
    known = dict(sorted(own_worlds().items()))
    if name not in known and name not in IN_LIBMUJOCO:
        raise UnknownEnv(f"there is no built-in environment {name!r}; there are {', '.join([*known, *IN_LIBMUJOCO])}")
    if changed:
        raise ConfigError(
            f"the built-in {name} takes no env_kwargs, wrappers or max_episode_steps; backend='gymnasium' does (slower)"
        )
    if name in IN_LIBMUJOCO:
        return _simulated(name, num_envs, backend, workers)
    if workers not in ("auto", 0):
        raise ConfigError(
            f"the built-in {name} steps all streams in one call and takes no workers, but workers is {workers}. Leave it "
            "out, or pass backend='gymnasium' (slower)."
        )
    return known[name](num_envs)


def _simulated(name: str, num_envs: int, backend: Backend, workers: Workers) -> World:
    """Return a MuJoCo task in C; Gymnasium's env, with the reason in `placed`, where that is not possible."""
    build = _builder(name, {}, None, False)
    world = mujoco_world([build] * num_envs, name, workers)
    if not isinstance(world, str):
        return world
    if backend == "surefoot":
        raise EnvError(f"{name} cannot be stepped in C: {world}")
    other = _placed(build, num_envs, name, workers)
    other.placed = f"Gymnasium steps {name}, not the kernel: {world}; {other.placed or 'envs in this process'}"
    return other


def _from_library(path: str, num_envs: int, backend: Backend, changed: bool, allow_import: bool) -> World:
    if not allow_import:
        raise EnvError(f"{path} is a library, and loading it runs its code; pass allow_import=True if you trust it")
    if changed or backend in ("gymnasium", "envpool"):
        raise ConfigError(
            f"{path} is an environment in C: it takes no env_kwargs, wrappers, max_episode_steps or backend='{backend}'; "
            "change its source instead"
        )
    return load_library(path)(num_envs)


def _existing(env: VectorEnv[Any, Any, Any] | World, num_envs: int, changed: bool, workers: Workers) -> World:
    world = VectorWorld(env) if isinstance(env, VectorEnv) else env
    if changed:
        raise ConfigError(
            f"{world.name} is a vector env; pass env_kwargs, wrappers and max_episode_steps where it is built"
        )
    if workers not in ("auto", 0):
        raise ConfigError(f"{world.name} is a vector env; pass workers={workers} where it is built")
    if num_envs not in (1, world.num_envs):
        raise ConfigError(
            f"{world.name} has {world.num_envs} streams already, but num_envs is {num_envs}; leave it out"
        )
    return world


def _many_agents(env: Any, num_envs: int, changed: bool, workers: Workers) -> World:
    if changed:
        raise ConfigError(
            "wrappers and max_episode_steps need a Gymnasium env; wrap a PettingZoo env where it is built"
        )
    if workers not in ("auto", 0):
        raise ConfigError(f"PettingZoo envs are stepped in this process; leave out workers={workers}")
    return agents_world(env, num_envs)


class _ManyAgents(Exception):
    """A function built a PettingZoo env."""

    def __init__(self, env: Any) -> None:
        super().__init__(f"{_kind(env)} is a PettingZoo env, which is stepped in this process; use workers=0")
        self.env = env


def _builder(name: str, kwargs: dict[str, Any], max_episode_steps: int | None, allow_import: bool) -> Callable[[], Any]:
    module, colon, name = name.rpartition(":")
    if colon:
        if not allow_import:
            raise EnvError(
                f"{module}:{name} would import the module {module!r}, which runs its code; import it yourself and pass "
                f"{name!r}, or pass allow_import=True"
            )
        importlib.import_module(module)
    register_envs()
    spec = copy.copy(registered_spec(name))
    spec.order_enforce = False  # a world never steps before reset, and the check costs time in each step
    return SpecBuilder(name, spec, kwargs, max_episode_steps)


@dataclass(slots=True)
class _Fresh:
    """Call `build`, and check that it builds a new Gymnasium env each time."""

    build: Callable[[], Any]
    built: list[SingleEnv] = field(default_factory=list[SingleEnv])

    def __call__(self) -> SingleEnv:
        env = build_env(self.build)
        if is_many_agents(env):
            raise _ManyAgents(env)
        if not isinstance(env, gym.Env):
            raise EnvError(_not_an_env(env))
        if any(env is other for other in self.built):
            raise EnvError("the function that builds envs returned the same env twice; build a new one in each call")
        self.built.append(cast(SingleEnv, env))
        return self.built[-1]


@dataclass(frozen=True, slots=True)
class _Wrapped:
    """Build an env and wrap it."""

    build: Callable[[], SingleEnv]
    wrappers: tuple[Wrap, ...]
    max_episode_steps: int | None

    def __call__(self) -> SingleEnv:
        env = self.build()
        if self.max_episode_steps is not None:
            env = gym.wrappers.TimeLimit(env, self.max_episode_steps)
        for wrap in self.wrappers:
            env = wrap(env)
        return env


def _kind(env: Any) -> str:
    return type(env).__name__


def _not_an_env(value: Any) -> str:
    if any(base.__module__.partition(".")[0] == "gym" for base in type(value).__mro__):
        return (
            f"{_kind(value)} is an env of the old gym; derive it from gymnasium.Env, or wrap it with shimmy's "
            "GymV21CompatibilityV0 or GymV26CompatibilityV0"
        )
    if any(base.__name__ == "VecEnv" for base in type(value).__mro__):
        return (
            f"{_kind(value)} is a VecEnv of Stable-Baselines3; pass it to surefoot.sb3.PPO, or pass the env's id or a function "
            "that builds one env"
        )
    return (
        f"{_kind(value)} is not an env; pass an id, a gymnasium.Env, a PettingZoo env, a function that builds one, a "
        "gymnasium.vector.VectorEnv or a surefoot World"
    )
