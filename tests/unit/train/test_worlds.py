"""World makers: ids, code of the user's, and ids of other rooms."""

import sys
from pathlib import Path

import gymnasium
import pytest

from surefoot.envs.check import check_env
from surefoot.envs.make import backend_of
from surefoot.errors import ConfigError, UnknownEnv
from surefoot.train.spec import make_spec
from surefoot.train.worlds import env_maker, policy_maker, single_env, spec_maker


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of the user's in the working directory, which is not on the path."""
    (tmp_path / "users_worlds.py").write_text(
        "import gymnasium\n"
        "def make(**kwargs):\n    return gymnasium.make('CartPole-v1', **kwargs)\n"
        "def policy(world):\n    return world.num_envs\n"
        "number = 3\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place not in ("", str(tmp_path))])
    monkeypatch.delitem(sys.modules, "users_worlds", raising=False)
    return "users_worlds"


def test_an_id_is_made_with_any_number_of_streams():
    make = env_maker("CartPole-v1")
    assert [make(n).num_envs for n in (1, 5)] == [1, 5]
    assert backend_of(env_maker("CartPole-v1", backend="gymnasium")(1)) == "gymnasium"


def test_a_function_of_the_users_is_found_in_the_working_directory(module: str):
    assert env_maker(f"{module}:make")(2).num_envs == 2
    assert single_env(f"{module}:make").__name__ == "make"
    assert policy_maker(f"{module}:policy")(env_maker("CartPole-v1")(3)) == 3


def test_what_a_module_does_not_have_is_named(module: str):
    for wrong in (f"{module}:nothing", "no_such_module:make"):
        with pytest.raises(UnknownEnv, match="ENV is an id or module:function"):
            env_maker(wrong)
        with pytest.raises(UnknownEnv, match="ENV is an id or module:function"):
            single_env(wrong)
    for wrong in ("policy", f"{module}:number"):
        with pytest.raises(UnknownEnv, match="from a world to a policy"):
            policy_maker(wrong)


def test_an_id_that_a_module_registers_is_checked_as_it_is_trained(module: str):
    Path(f"{module}.py").write_text(
        "import gymnasium\n"
        "gymnasium.register('users/Pole-v0', 'gymnasium.envs.classic_control.cartpole:CartPoleEnv', max_episode_steps=9)\n"
    )
    with pytest.raises(UnknownEnv, match="MODULE:users/Pole-v0 if a package registers it"):
        env_maker("users/Pole-v0")(1)
    try:
        assert env_maker(f"{module}:users/Pole-v0")(2).num_envs == 2
        assert check_env(single_env(f"{module}:users/Pole-v0")) == []
    finally:
        del gymnasium.registry["users/Pole-v0"]


def test_ids_of_towns_are_made_by_the_towns_room():
    world = env_maker("town/queue_conflict")(6)
    spec = make_spec("town/queue_conflict", world.action, settings={"envs": 6})
    assert world.num_envs == spec_maker(spec)(6).num_envs == 6
    assert single_env("town/queue_conflict").possible_agents
    with pytest.raises(ConfigError, match="env_kwargs has walls; a town takes only scenario, variant and central"):
        env_maker("town/queue_conflict", env_kwargs={"walls": 3})
