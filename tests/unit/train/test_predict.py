"""Predicting with memory and with nested actions: what comes out is what the env takes, and goes on where it stopped."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces

from recall import Recall, RecallShape
from surefoot.data.spaces import Box, Discrete, Hybrid
from surefoot.errors import ConfigError, ShapeError, SpaceError
from surefoot.train.facade import PPO
from surefoot.train.interop.sb3_functions import evaluate_policy
from surefoot.train.predict import Spaces, refuse_other_spaces

SMALL: dict[str, Any] = {"n_steps": 8, "batch_size": 8, "n_epochs": 1, "preset": "sb3"}


class Taker(gym.Env[Any, Any]):
    """Episodes of 5 steps; refuses whatever its action space does not contain."""

    def __init__(self, action: Any) -> None:
        self.observation_space, self.action_space = spaces.Box(-1, 1, (3,), np.float32), action
        self.steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.steps = 0
        return self._look(), {}

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action), action
        self.steps += 1
        return self._look(), 1.0, self.steps == 5, False, {}

    def _look(self) -> Any:
        return self.np_random.uniform(-1, 1, 3).astype(np.float32)


NESTS = {
    "tuple": spaces.Tuple((spaces.Discrete(3, start=2), spaces.Box(-0.1, 0.1, (2, 1), np.float64))),
    "dict": spaces.Dict(
        {"keys": spaces.MultiBinary((2,)), "stick": spaces.Box(-1.0, 1.0, (2,)), "turn": spaces.Discrete(2)}
    ),
    "unsorted": spaces.Dict(OrderedDict(z=spaces.Discrete(2), a=spaces.Discrete(9), m=spaces.Box(-1.0, 1.0, (1,)))),
    "deep": spaces.Tuple((spaces.Dict({"in": spaces.Tuple((spaces.MultiDiscrete([2, 3]),))}), spaces.Discrete(2))),
    "numbers": spaces.Tuple((spaces.Box(-1.0, 1.0, ()), spaces.Box(3.0, 4.0, (2,)))),
}


@pytest.mark.parametrize("name", NESTS)
def test_a_nested_action_is_learned_predicted_and_kept_by_a_save(name: str, tmp_path: Path) -> None:
    space = NESTS[name]
    model = PPO("MlpPolicy", lambda: Taker(space), n_envs=2, **SMALL).learn(48)
    model.save(tmp_path)
    loaded = PPO.load(tmp_path)
    assert loaded.spaces.gym_action == space
    rng = np.random.default_rng(0)
    for deterministic in (True, False):
        for _ in range(5):
            obs = rng.uniform(-1, 1, 3).astype(np.float32)
            ours, theirs = (m.predict(obs, deterministic=deterministic)[0] for m in (model, loaded))
            assert space.contains(ours), ours
            assert space.contains(theirs), theirs
            flat = [spaces.flatten(space, action) for action in (ours, theirs)]
            assert np.array_equal(*flat) or not deterministic
        many, _ = model.predict(rng.uniform(-1, 1, (4, 3)).astype(np.float32), deterministic=deterministic)
        assert gym.vector.utils.batch_space(space, 4).contains(many), many
    assert evaluate_policy(model, lambda: Taker(space), 3) == (5.0, 0.0)


def test_the_order_of_an_unsorted_dict_survives_its_tree() -> None:
    kept = Spaces(spaces.Box(0, 1, (1,)), NESTS["unsorted"])
    again = Spaces.from_tree(kept.to_tree())
    assert again.action == kept.action == Hybrid((2, 9), Box((1,), (-1.0,), (1.0,)))
    row = np.array([[1, 8, 0.5]], np.float32)
    assert again.answer(row, single=True)["a"] == kept.answer(row, single=True)["a"] == 8


def test_a_hybrid_policy_may_live_in_its_own_world_and_in_no_other() -> None:
    world = Recall(4, RecallShape(act="hybrid"))
    model = PPO("MlpPolicy", world, **SMALL).learn(32)
    evaluate_policy(model, Recall(4, RecallShape(act="hybrid")), 4)
    action, _ = model.predict(np.zeros(4, np.float32))
    assert model.spaces.gym_action.contains(action)
    narrow = Hybrid((2,), Box((1,), -0.5, 0.5))  # bounds may differ
    refuse_other_spaces(world.observation, narrow, world)
    for other in (Hybrid((3,), Box((1,))), Hybrid((2,), Box((2,))), Discrete(2), Box((2,))):
        with pytest.raises(ConfigError, match="use the env it was made for"):
            refuse_other_spaces(world.observation, other, world)


def a_model(memory: str) -> PPO:
    return PPO(
        "MlpPolicy", Recall(4, RecallShape(hidden=True)), **SMALL, policy_kwargs={"memory": memory, "memory_size": 6}
    )


def worth(model: PPO, obs: np.ndarray, state: dict[str, torch.Tensor]) -> torch.Tensor:
    """What the actor's memory makes of it: actions alone would hide much."""
    return model.predict(obs, state=state, deterministic=True)[1]["memory"]


@pytest.mark.parametrize("memory", ["gru", "lstm"])
def test_what_is_remembered_is_given_back_and_taken_again(memory: str) -> None:
    model, rng = a_model(memory), np.random.default_rng(0)
    obs = rng.normal(size=(3, 4)).astype(np.float32)
    _, fresh = model.predict(obs)
    assert fresh is not None
    assert {name: x.shape[0] for name, x in fresh.items()} == {"memory": 3, "critic_memory": 3}
    kept = {name: x.clone() for name, x in fresh.items()}
    onward = worth(model, obs, fresh)
    assert all(torch.equal(x, fresh[name]) for name, x in kept.items())
    assert (onward - fresh["memory"]).abs().max() > 1e-3
    assert torch.equal(worth(model, obs, fresh), onward)


def test_where_an_episode_starts_the_state_is_forgotten_in_that_row() -> None:
    model, rng = a_model("gru"), np.random.default_rng(0)
    obs = rng.normal(size=(2, 4)).astype(np.float32)
    _, fresh = model.predict(obs)
    _, begun = model.predict(obs, state=fresh, episode_start=[True, False])
    _, gone_on = model.predict(obs, state=fresh)
    assert fresh is not None
    assert begun is not None
    assert gone_on is not None
    assert torch.allclose(begun["memory"][0], fresh["memory"][0], atol=1e-6)
    assert torch.allclose(begun["memory"][1], gone_on["memory"][1], atol=1e-6)
    assert (gone_on["memory"][0] - fresh["memory"][0]).abs().max() > 1e-3


def test_rows_remember_each_for_itself() -> None:
    model, rng = a_model("lstm"), np.random.default_rng(0)
    obs = rng.normal(size=(3, 4)).astype(np.float32)
    _, together = model.predict(obs)
    assert together is not None
    _, alone = model.predict(obs[1])
    assert alone is not None
    assert torch.allclose(together["memory"][1:2], alone["memory"], atol=1e-6)


def test_a_state_of_other_streams_is_refused() -> None:
    model = a_model("gru")
    _, state = model.predict(np.zeros((2, 4), np.float32))
    with pytest.raises(ShapeError, match="state is for 2 streams but there are 3 observations"):
        model.predict(np.zeros((3, 4), np.float32), state=state)
    with pytest.raises(ShapeError, match="episode_start has 1 entries for 2"):
        model.predict(np.zeros((2, 4), np.float32), state=state, episode_start=[True])


def test_a_policy_without_memory_has_nothing_to_pass_on() -> None:
    assert a_model("none").predict(np.zeros((2, 4), np.float32))[1] is None


def test_a_model_with_memory_predicts_the_same_after_a_save(tmp_path: Path) -> None:
    model = a_model("lstm").learn(64)
    model.save(tmp_path)
    loaded = PPO.load(tmp_path)
    obs, states = np.random.default_rng(0).normal(size=(5, 2, 4)).astype(np.float32), [None, None]
    for row in obs:
        for i, each in enumerate((model, loaded)):
            _, states[i] = each.predict(row, state=states[i], deterministic=True)
        assert torch.equal(states[0]["memory"], states[1]["memory"])


@pytest.mark.parametrize("state", [(np.zeros(3), np.zeros(3)), {"x": np.zeros(1)}, {}])
def test_a_state_of_another_kind_is_told_apart(state):
    model = PPO("MlpGruPolicy", "surefoot/CartPoleNoVel-v0", n_steps=8, n_envs=1, batch_size=8)
    with pytest.raises(ShapeError, match="state does not fit this policy, which keeps 'memory', 'critic_memory'"):
        model.predict(np.zeros(2, np.float32), state=state)


def test_a_policy_is_left_something_to_see():
    with pytest.raises(SpaceError, match="no observation part left"):
        PPO("MlpPolicy", "CartPole-v1", critic_only=("obs",))
