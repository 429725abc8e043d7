"""A world from whatever the user has: an id, an env of one agent or many, a function that builds one, a vector env, a world."""

from __future__ import annotations

import copy
import difflib
import importlib
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, cast, runtime_checkable

import gymnasium as gym
from gymnasium.vector import VectorEnv

from surefoot.envs.agents.pettingzoo import AgentsWorld, agents_world, is_many_agents
from surefoot.envs.agents.stepping import ParallelEnv, TurnEnv
from surefoot.envs.api import World
from surefoot.envs.builtin.native import load_library
from surefoot.envs.gym.atari import game_of, is_atari, register_games
from surefoot.envs.gym.envpool import PoolWorld, pool_options
from surefoot.envs.gym.single_envs import EnvsWorld
from surefoot.envs.gym.vector_env import VectorWorld, build_env
from surefoot.envs.ids import is_library
from surefoot.envs.register import own_worlds, register_envs
from surefoot.envs.workers.placement import Workers, place
from surefoot.envs.workers.process_world import ProcessWorld
from surefoot.errors import ConfigError, EnvError, SurefootError, UnknownEnv

Backend = Literal["auto", "surefoot", "gymnasium", "envpool"]
BACKENDS: tuple[Backend, ...] = ("auto", "surefoot", "gymnasium", "envpool")
SingleEnv = gym.Env[Any, Any]
EnvLike = str | SingleEnv | Callable[[], Any] | VectorEnv[Any, Any, Any] | World | ParallelEnv | TurnEnv
Wrap = Callable[[SingleEnv], SingleEnv]


@runtime_checkable
class _AnyWorld(World, Protocol):
    """`World`, so that one can be told from an env at run time."""


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
    """N streams of `env`.

    "auto" takes our own vectorised world where there is one for the id and nothing is asked of it that only
    Gymnasium's env knows (env_kwargs, wrappers, max_episode_steps); `backend_of` says which one it was. Atari's games
    come with the details of PPO (`surefoot.envs.gym.atari`); "gymnasium" gives them bare, "envpool" EnvPool's. An id with a
    module in front ("module:Name-v0") or the path of a world in C ("./my_world.so") runs code, so it needs
    `allow_import`.

    `workers` processes step the envs, with the digits of one; 0 steps them in this process, "auto" measures what pays
    (`placement_of` says what came of it). Our own worlds step all streams at once and take none.

    Of a PettingZoo env with A agents, or a function that builds one, N copies are N·A streams; `agents_world` has
    what else can be said of them.
    """
    if num_envs < 1:
        raise ConfigError(f"num_envs is {num_envs}; a world needs at least 1")
    if backend not in BACKENDS:
        raise ConfigError(f"backend is {backend!r}; it is 'auto', 'surefoot', 'gymnasium' or 'envpool'")
    if workers != "auto" and workers < 0:
        raise ConfigError(f"workers is {workers}; it is 'auto' or a whole number, at least 0")
    changed = bool(env_kwargs) or bool(wrappers) or max_episode_steps is not None
    if isinstance(env, str):
        if is_library(env):
            return _from_library(env, num_envs, backend, changed, allow_import)
        if backend == "envpool":
            return PoolWorld(env, num_envs, pool_options(env_kwargs, bool(wrappers), max_episode_steps, workers))
        own = own_worlds()
        if backend in ("auto", "surefoot") and is_atari(env):
            game = game_of(_spec(env), env_kwargs or {}, max_episode_steps)
            return _placed(_Wrapped(game, tuple(wrappers), None), num_envs, env, workers, "surefoot")
        if backend == "surefoot" or (backend == "auto" and not changed and env in own):
            return _own(env, num_envs, own, changed, workers)
        build = _Wrapped(_builder(env, dict(env_kwargs or {}), max_episode_steps, allow_import), tuple(wrappers), None)
        return _placed(build, num_envs, env.rpartition(":")[2], workers)
    if backend in ("surefoot", "envpool"):
        raise ConfigError(f"backend={backend!r} needs the id of one of its own worlds, not {type(env).__name__}")
    if isinstance(env, VectorEnv | _AnyWorld):
        return _ready(env, num_envs, changed, workers)
    if env_kwargs:
        raise ConfigError(f"env_kwargs only go with an id; put them into whatever builds the {type(env).__name__}")
    if isinstance(env, gym.Env):
        if num_envs > 1:
            raise ConfigError(
                f"{num_envs} streams cannot share one {type(env.unwrapped).__name__}; pass a function that builds one, "
                f"such as lambda: {type(env.unwrapped).__name__}()"
            )
        if workers not in ("auto", 0):
            raise ConfigError(
                f"workers={workers} cannot take over a {type(env.unwrapped).__name__} that is already here; pass its id "
                "or a function that builds one"
            )
        single = cast(SingleEnv, env)
        return EnvsWorld([_Wrapped(lambda: single, tuple(wrappers), max_episode_steps)])
    if is_many_agents(env):
        return _many_agents(env, num_envs, changed, workers)
    if not callable(env):
        raise EnvError(_not_an_env(env))
    fresh = _Fresh(env)
    build = _Wrapped(fresh, tuple(wrappers), max_episode_steps)
    try:
        # Not measured: what a user's function does when it is called once more is not ours to know.
        return _placed(build, num_envs, None, 0 if workers == "auto" else workers)
    except _ManyAgents as found:
        made = iter([found.env])  # the first is there already
        return _many_agents(lambda: next(made, None) or env(), num_envs, changed, workers)


def make_streams(env: EnvLike, streams: int, **options: Any) -> World:
    """`make_world` where `streams` counts streams: of an env with A agents, as many copies as make that many."""
    world = make_world(env, streams, **options)
    if not isinstance(world, AgentsWorld) or world is env or world.num_envs == streams:
        return world
    copies = max(1, streams // len(world.agents))
    world.close()
    return make_world(env, copies, **options)


def backend_of(world: World) -> str:
    """Who runs the streams: "gymnasium", "envpool", "pettingzoo", or "surefoot" for a world that is its own."""
    if isinstance(world, EnvsWorld | ProcessWorld | VectorWorld | PoolWorld | AgentsWorld):
        return world.backend
    return "surefoot"


def placement_of(world: World) -> str | None:
    """A sentence that says why the envs run in this process or in workers; None where there was no choice."""
    return world.placed if isinstance(world, EnvsWorld | ProcessWorld) else None


def _placed(
    build: Callable[[], SingleEnv], num_envs: int, name: str | None, workers: Workers, backend: str = "gymnasium"
) -> World:
    count, why = place(build, num_envs) if workers == "auto" else (workers, None)
    if count == 0:
        world = EnvsWorld([build] * num_envs, name)
        world.placed = why
    else:
        world = ProcessWorld([build] * num_envs, count, name)
        world.placed = why or f"envs in {world.workers + 1} processes, as asked"
    world.backend = backend
    return world


def _own(name: str, num_envs: int, own: Mapping[str, Callable[[int], World]], changed: bool, workers: Workers) -> World:
    if name not in own:
        raise UnknownEnv(f"there is no world of our own called {name!r}; there are {', '.join(sorted(own))}")
    if changed:
        raise ConfigError(
            f"our own {name} takes no env_kwargs, wrappers or max_episode_steps; backend='gymnasium' does (slower)"
        )
    if workers not in ("auto", 0):
        raise ConfigError(
            f"our own {name} steps all its streams at once, so workers={workers} have nothing to do; leave them away, or "
            "say backend='gymnasium' (slower)"
        )
    return own[name](num_envs)


def _from_library(path: str, num_envs: int, backend: Backend, changed: bool, allow_import: bool) -> World:
    if not allow_import:
        raise EnvError(f"{path} is a library, and loading it runs its code; say allow_import=True if you trust it")
    if changed or backend in ("gymnasium", "envpool"):
        raise ConfigError(
            f"{path} is a world in C: it takes no env_kwargs, wrappers, max_episode_steps or backend='{backend}'; "
            "what it needs goes into its source"
        )
    return load_library(path)(num_envs)


def _ready(env: VectorEnv[Any, Any, Any] | World, num_envs: int, changed: bool, workers: Workers) -> World:
    """Something that has its streams already."""
    world = VectorWorld(env) if isinstance(env, VectorEnv) else env
    if changed:
        raise ConfigError(
            f"{world.name} is a vector of envs already; env_kwargs, wrappers and max_episode_steps go where it is built"
        )
    if workers not in ("auto", 0):
        raise ConfigError(f"{world.name} is a vector of envs already; workers={workers} goes where it is built")
    if num_envs not in (1, world.num_envs):
        raise ConfigError(f"{world.name} has {world.num_envs} streams already, so num_envs={num_envs} cannot be had")
    return world


def _many_agents(env: Any, num_envs: int, changed: bool, workers: Workers) -> World:
    if changed:
        raise ConfigError(
            "wrappers and max_episode_steps are for a Gymnasium env; wrap an env with agents where it is built"
        )
    if workers not in ("auto", 0):
        raise ConfigError(f"envs with agents are stepped in this process; leave workers={workers} away")
    return agents_world(env, num_envs)


class _ManyAgents(Exception):
    """A function built an env with agents."""

    def __init__(self, env: Any) -> None:
        super().__init__(f"{type(env).__name__} is an env with agents; it is stepped in this process, with workers=0")
        self.env = env


def _builder(name: str, kwargs: dict[str, Any], max_episode_steps: int | None, allow_import: bool) -> Callable[[], Any]:
    module, colon, name = name.rpartition(":")
    if colon:
        if not allow_import:
            raise EnvError(
                f"{module}:{name} would import the module {module!r}, which runs its code; import it yourself and pass "
                f"{name!r}, or say allow_import=True"
            )
        importlib.import_module(module)
    register_envs()
    spec = copy.copy(_spec(name))
    spec.order_enforce = False  # a world never steps before it resets, and looking at it costs time in each step
    return _FromSpec(name, spec, kwargs, max_episode_steps)


@dataclass(frozen=True, slots=True)
class _FromSpec:
    """Builds one env of a registered id. A worker is sent the spec, so it need not have the registration."""

    name: str
    spec: Any
    kwargs: dict[str, Any]
    max_episode_steps: int | None

    def __call__(self) -> Any:
        try:
            with _without_model_warnings(self.spec):
                return gym.make(self.spec, self.max_episode_steps, disable_env_checker=True, **self.kwargs)
        except (gym.error.DependencyNotInstalled, ImportError) as error:
            where = str(self.spec.entry_point)
            extras = [e for sign, e in (("mujoco", "mujoco"), ("box2d", "box2d"), ("ale_py", "atari")) if sign in where]
            advice = f'; pip install "surefoot[{extras[0]}]"' if extras else ""
            raise EnvError(f"{self.name} needs a package that is not installed ({error}){advice}") from error
        except SurefootError:
            raise
        except Exception as error:
            raise EnvError(f"{self.name} could not be made with {self.kwargs or 'its defaults'}: {error}") from error


@contextmanager
def _without_model_warnings(spec: Any) -> Generator[None]:
    """Keep MuJoCo from complaining of Gymnasium's own model files, N times a world, and from logging it to ./MUJOCO_LOG.TXT."""
    if not str(spec.entry_point).startswith("gymnasium.envs.mujoco"):
        yield
        return
    mujoco = importlib.import_module("mujoco")
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(str)  # a function that does nothing with the message
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)


def _spec(name: str) -> Any:
    if name not in gym.registry and (is_atari(name) or name.startswith("ALE/")):
        register_games(name)
    if name in gym.registry:
        return gym.registry[name]
    if name.endswith((".so", ".dylib")):
        raise UnknownEnv(f"there is no env {name!r}; a world in C needs its path: ./{name}")
    near = difflib.get_close_matches(name, [*gym.registry, *own_worlds()], n=3, cutoff=0.6)
    advice = f"did you mean {' or '.join(dict.fromkeys(near))}?" if near else "gymnasium.pprint_registry() lists them."
    raise UnknownEnv(f"there is no env {name!r}; {advice}")


@dataclass(slots=True)
class _Fresh:
    """`build`, looked at: it must make a new Gymnasium env each time."""

    build: Callable[[], Any]
    made: list[SingleEnv] = field(default_factory=list[SingleEnv])

    def __call__(self) -> SingleEnv:
        env = build_env(self.build)
        if is_many_agents(env):
            raise _ManyAgents(env)
        if not isinstance(env, gym.Env):
            raise EnvError(_not_an_env(env))
        if any(env is other for other in self.made):
            raise EnvError(
                "the function that builds envs returned the same env twice; let it build a new one each time"
            )
        self.made.append(cast(SingleEnv, env))
        return self.made[-1]


@dataclass(frozen=True, slots=True)
class _Wrapped:
    """What `build` builds, in wrappers."""

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


def _not_an_env(thing: Any) -> str:
    kind = type(thing)
    if any(base.__module__.partition(".")[0] == "gym" for base in kind.__mro__):
        return (
            f"{kind.__name__} is an env of the old gym; derive it from gymnasium.Env, or wrap it with shimmy's "
            "GymV21CompatibilityV0 or GymV26CompatibilityV0"
        )
    return (
        f"{kind.__name__} is not an env; an id, a gymnasium.Env, a PettingZoo env, a function that builds one, a "
        "gymnasium.vector.VectorEnv or a surefoot World works"
    )
