"""A world from whatever the user has, and our worlds as Gymnasium envs."""

from __future__ import annotations

import sys
import types
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import wrappers
from gymnasium.vector import SyncVectorEnv

from surefoot.data.spaces import Box, Discrete
from surefoot.envs.gym.single_envs import EnvsWorld
from surefoot.envs.gym.vector_env import VectorWorld
from surefoot.envs.make import backend_of, make_world
from surefoot.envs.register import own_worlds
from surefoot.errors import ConfigError, EnvError, UnknownEnv

OURS = sorted(name for name in own_worlds() if name.startswith("surefoot/"))


def cartpole() -> gym.Env[Any, Any]:
    return gym.make("CartPole-v1")


def test_an_id_we_know_gets_our_own_world() -> None:
    world = make_world("CartPole-v1", 3)
    assert backend_of(world) == "surefoot"
    assert (world.name, world.num_envs) == ("CartPole-v1", 3)


@pytest.mark.parametrize(
    "asked",
    [
        {"backend": "gymnasium"},
        {"env_kwargs": {"sutton_barto_reward": True}},
        {"wrappers": (wrappers.FlattenObservation,)},
        {"max_episode_steps": 7},
    ],
)
def test_what_only_gymnasiums_env_can_do_gets_gymnasiums(asked: Any) -> None:
    world = make_world("CartPole-v1", 2, **asked)
    assert backend_of(world) == "gymnasium"
    assert (world.name, world.num_envs) == ("CartPole-v1", 2)
    assert world.inexact is None


def test_our_world_and_gymnasiums_have_the_same_spaces() -> None:
    for name in own_worlds():
        if name in gym.registry and not name.startswith("surefoot/"):
            ours, theirs = make_world(name), make_world(name, backend="gymnasium")
            assert ours.action == theirs.action, name
            assert ours.observation["obs"].shape == theirs.observation["obs"].shape, name


def test_arguments_reach_the_env() -> None:
    world = make_world("CartPole-v1", env_kwargs={"sutton_barto_reward": True})
    world.reset(0)
    assert world.step(np.array([0])).reward.tolist() == [0.0]


def test_an_episode_is_cut_where_the_caller_says() -> None:
    for env in ("CartPole-v1", cartpole, cartpole()):
        world = make_world(env, max_episode_steps=2)
        world.reset(0)
        assert [world.step(np.array([0])).truncated.tolist() for _ in range(2)] == [[False], [True]]


def test_wrappers_go_around_in_order() -> None:
    world = make_world(
        "Pendulum-v1",
        wrappers=[lambda env: wrappers.RescaleAction(env, np.float32(-1), np.float32(1)), wrappers.FlattenObservation],
    )
    assert world.action == Box((1,), -1.0, 1.0)
    assert isinstance(world, EnvsWorld)
    assert isinstance(world.envs[0], wrappers.FlattenObservation)


def test_a_world_made_by_id_steps_the_env_without_gymnasiums_checkers() -> None:
    world = make_world("Acrobot-v1", backend="gymnasium")
    assert isinstance(world, EnvsWorld)
    assert isinstance(world.envs[0], wrappers.TimeLimit)
    assert world.envs[0].env is world.envs[0].unwrapped
    assert gym.spec("Acrobot-v1").order_enforce


def test_a_function_is_called_once_for_each_stream() -> None:
    world = make_world(cartpole, 3)
    assert isinstance(world, EnvsWorld)
    assert len({id(env) for env in world.envs}) == 3
    assert world.action == Discrete(2)


def test_a_function_that_returns_the_same_env_twice_is_refused() -> None:
    env = cartpole()
    with pytest.raises(EnvError, match="the same env twice"):
        make_world(lambda: env, 2)


def test_one_env_cannot_be_several_streams() -> None:
    assert make_world(cartpole()).num_envs == 1
    with pytest.raises(ConfigError, match="pass a function that builds one"):
        make_world(cartpole(), 2)


def test_a_vector_env_and_a_world_are_taken_as_they_are() -> None:
    world = make_world(SyncVectorEnv([cartpole] * 2), 2)
    assert isinstance(world, VectorWorld)
    assert backend_of(world) == "gymnasium"
    assert make_world(world) is world
    ours = make_world("CartPole-v1", 2)
    assert make_world(ours, 2) is ours
    with pytest.raises(ConfigError, match="has 2 streams already"):
        make_world(ours, 3)
    with pytest.raises(ConfigError, match="where it is built"):
        make_world(ours, wrappers=(wrappers.FlattenObservation,))


@pytest.mark.parametrize(
    ("name", "meant"),
    [("CartPol-v1", "CartPole-v1"), ("LunarLander-v2", "LunarLander-v3"), ("Corridor-v0", "Corridor")],
)
def test_an_unknown_id_gets_the_nearest_ones(name: str, meant: str) -> None:
    with pytest.raises(UnknownEnv, match=rf"no env '{name}'; did you mean .*{meant}"):
        make_world(name)


def test_an_id_like_no_other_gets_the_list() -> None:
    with pytest.raises(UnknownEnv, match="pprint_registry"):
        make_world("zzzzzzzzzzzzzzzz")


def test_our_backend_says_which_worlds_it_has() -> None:
    with pytest.raises(UnknownEnv, match=r"'Blackjack-v1'; there are .*CartPole-v1"):
        make_world("Blackjack-v1", backend="surefoot")
    with pytest.raises(ConfigError, match="backend='gymnasium' does"):
        make_world("CartPole-v1", backend="surefoot", max_episode_steps=3)
    with pytest.raises(ConfigError, match="needs the id"):
        make_world(cartpole, backend="surefoot")


def test_values_that_cannot_work_are_refused() -> None:
    with pytest.raises(ConfigError, match="num_envs is 0"):
        make_world("CartPole-v1", 0)
    with pytest.raises(ConfigError, match="'auto', 'surefoot', 'gymnasium' or 'envpool'"):
        make_world("CartPole-v1", backend="jax")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="env_kwargs only go with an id"):
        make_world(cartpole, env_kwargs={"a": 1})
    with pytest.raises(EnvError, match="int is not an env"):
        make_world(3)  # type: ignore[arg-type]
    with pytest.raises(EnvError, match=r"could not be made with {'colour': 'red'}"):
        make_world("CartPole-v1", env_kwargs={"colour": "red"})


def test_an_error_without_a_text_is_named_by_its_type() -> None:
    gym.register("test/Mute-v0", _mute)
    try:
        with pytest.raises(EnvError, match=r"could not be made with its defaults: AssertionError\(\)"):
            make_world("test/Mute-v0")
    finally:
        del gym.registry["test/Mute-v0"]


def _mute() -> Any:
    raise AssertionError


def test_an_env_of_the_old_gym_is_told_apart() -> None:
    old = type("OldEnv", (), {"__module__": "gym.core"})
    with pytest.raises(EnvError, match="OldEnv is an env of the old gym"):
        make_world(old())
    with pytest.raises(EnvError, match="OldEnv is an env of the old gym"):
        make_world(lambda: old())


def test_a_module_in_an_id_is_imported_only_when_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "some_module", types.ModuleType("some_module"))
    with pytest.raises(EnvError, match="allow_import=True"):
        make_world("some_module:CartPole-v1")
    world = make_world("some_module:CartPole-v1", allow_import=True)
    assert (world.name, backend_of(world)) == ("CartPole-v1", "gymnasium")


def _missing(**_: Any) -> Any:
    raise gym.error.DependencyNotInstalled("it is not here")


@pytest.mark.parametrize(
    ("module", "extra"), [("mujoco.ant_v5", "mujoco"), ("box2d.lunar_lander", "box2d"), ("toy_text.taxi", None)]
)
def test_a_missing_package_names_its_extra(monkeypatch: pytest.MonkeyPatch, module: str, extra: str | None) -> None:
    monkeypatch.setattr(gym, "make", lambda *_, **kw: _missing(**kw))
    spec = gym.envs.registration.EnvSpec("Needs-v0", entry_point=f"gymnasium.envs.{module}:Env")
    monkeypatch.setitem(gym.registry, "Needs-v0", spec)
    with pytest.raises(EnvError, match="not installed") as caught:
        make_world("Needs-v0")
    assert (f'pip install "surefoot[{extra}]"' in str(caught.value)) == (extra is not None)


def test_atari_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ale_py", None)
    with pytest.raises(EnvError, match=r'pip install "surefoot\[atari\]"'):
        make_world("ALE/Nowhere-v5")


@pytest.mark.parametrize(
    ("name", "action"),
    [("LunarLander-v3", Discrete), ("LunarLanderContinuous-v3", Box), ("BipedalWalker-v3", Box)],
)
def test_box2d_worlds_are_made_and_say_that_they_cannot_be_kept(name: str, action: type) -> None:
    pytest.importorskip("Box2D")
    world = make_world(name, 2)
    world.reset(0)
    assert isinstance(world.action, action)
    assert "does not export its state" in (world.inexact or "")
    world.close()
