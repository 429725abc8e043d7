"""Dict and Tuple actions: rows become members of the space, for one env and for a batch."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv

from surefoot.data.spaces import ActionSpace, Box, Hybrid, MultiDiscrete
from surefoot.envs.gym.nested_actions import former, is_nest, nest_action, row_like
from surefoot.envs.gym.spaces import action_from_gym, action_writer, choices
from surefoot.envs.gym.vector_env import VectorWorld
from surefoot.envs.make import make_world
from surefoot.errors import SpaceError

NESTS: dict[str, gym.Space[Any]] = {
    "tuple": spaces.Tuple((spaces.Discrete(3), spaces.Box(-1.0, 2.0, (2,)))),
    "started": spaces.Tuple((spaces.Discrete(3, start=-4), spaces.MultiDiscrete([2, 3], start=[5, 7]))),
    "dict": spaces.Dict({"z": spaces.MultiBinary((2, 2)), "a": spaces.Box(0.0, 1.0, (2, 3)), "m": spaces.Discrete(2)}),
    "deep": spaces.Dict(
        {
            "hand": spaces.Tuple((spaces.Box(-1.0, 1.0, ()), spaces.MultiDiscrete([[2, 3], [4, 5]]))),
            "foot": spaces.Dict({"kick": spaces.MultiBinary(3), "turn": spaces.Box(-0.1, 0.1, (1, 2), np.float64)}),
            "word": spaces.Discrete(4, start=2),
        }
    ),
    "unsorted": spaces.Dict(OrderedDict(z=spaces.Discrete(2), a=spaces.Discrete(5), m=spaces.Box(-1.0, 1.0, (1,)))),
    "only choices": spaces.Tuple((spaces.Discrete(3), spaces.MultiBinary(2))),
    "only numbers": spaces.Tuple((spaces.Box(-1.0, 1.0, (2,)), spaces.Box(3.0, 4.0, (1,)))),
    "single": spaces.Dict({"only": spaces.Discrete(7)}),
}


def rows_of(action: ActionSpace, n: int, rng: np.random.Generator) -> np.ndarray:
    """Rows as a policy makes them: every choice, and numbers up to the very bounds."""
    parts: list[np.ndarray] = []
    if isinstance(action, MultiDiscrete | Hybrid):
        parts.append(rng.integers(action.nvec, size=(n, len(action.nvec))))
    if isinstance(action, Box | Hybrid):
        low, high = (action.box if isinstance(action, Hybrid) else action).bounds()
        share = rng.integers(0, 5, size=(n, low.size)).astype(np.float32) / 4
        parts.append((low + (high - low) * share).astype(np.float32))
    return np.concatenate(parts, axis=1)


@pytest.mark.parametrize("name", NESTS)
def test_a_row_becomes_a_member_of_the_space(name: str) -> None:
    space = NESTS[name]
    form = former(space)
    assert form is not None
    rows = action_writer(space)(rows_of(action_from_gym(space), 200, np.random.default_rng(0)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # Gymnasium casts what is no array, and warns
        for row in rows:
            action = form(row)
            assert space.contains(action), action


@pytest.mark.parametrize("name", NESTS)
def test_rows_become_a_member_of_the_batched_space(name: str) -> None:
    space = NESTS[name]
    form = former(space)
    assert form is not None
    batched = gym.vector.utils.batch_space(space, 6)
    rows = action_writer(space)(rows_of(action_from_gym(space), 6, np.random.default_rng(0)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        together = form(rows)
        assert batched.contains(together), together
    each = gym.vector.utils.iterate(batched, together)
    for alone, among in zip((form(row) for row in rows), each, strict=True):
        assert same(alone, among)


def same(one: Any, two: Any) -> bool:
    if isinstance(one, dict):
        return set(one) == set(two) and all(same(one[key], two[key]) for key in one)
    if isinstance(one, tuple):
        return len(one) == len(two) and all(map(same, one, two))
    return np.array_equal(one, two)


def test_choices_come_first_and_numbers_behind_them_each_in_the_order_of_the_nest() -> None:
    assert nest_action(NESTS["tuple"], "x") == Hybrid((3,), Box((2,), (-1.0, -1.0), (2.0, 2.0)))
    assert nest_action(NESTS["unsorted"], "x") == Hybrid((2, 5), Box((1,), (-1.0,), (1.0,)))
    deep = nest_action(NESTS["deep"], "x")
    assert isinstance(deep, Hybrid)
    # Gymnasium sorts a dict: foot, hand, word; and in foot: kick, turn.
    assert deep.nvec == (2, 2, 2, 2, 3, 4, 5, 4)
    assert deep.box.low == (-0.1, -0.1, -1.0)


def test_a_row_by_hand() -> None:
    form = former(NESTS["deep"])
    assert form is not None
    action = form(np.array([1, 0, 1, 0, 2, 3, 4, 3, 0.05, -0.05, 0.5], np.float32))
    assert action["foot"]["kick"].tolist() == [1, 0, 1]
    assert action["foot"]["turn"] == pytest.approx(np.array([[0.05, -0.05]]))
    assert action["hand"][0] == 0.5
    assert action["hand"][1].tolist() == [[0, 2], [3, 4]]
    assert action["word"] == 5  # the last of four that begin with 2


def test_a_nest_of_one_kind_is_a_plain_space_of_it() -> None:
    assert nest_action(NESTS["only choices"], "x") == MultiDiscrete((3, 2, 2))
    assert nest_action(NESTS["only numbers"], "x") == Box((3,), (-1.0, -1.0, 3.0), (1.0, 1.0, 4.0))
    assert nest_action(NESTS["single"], "x") == MultiDiscrete((7,))


def test_a_mask_of_a_nest_has_an_entry_for_each_option() -> None:
    assert choices(nest_action(NESTS["dict"], "x")) == 2 + 4 * 2
    assert choices(nest_action(NESTS["only numbers"], "x")) == 0


@pytest.mark.parametrize("name", NESTS)
def test_a_row_is_as_wide_and_of_the_kind_that_it_is_handed_over_in(name: str) -> None:
    space = NESTS[name]
    rows = rows_of(action_from_gym(space), 1, np.random.default_rng(0))
    assert row_like(space).shape == rows.shape[1:]
    assert row_like(space).dtype == (np.int64 if name in ("started", "only choices", "single") else np.float32)


def test_a_plain_space_is_no_nest() -> None:
    plain = spaces.MultiDiscrete([2, 3])
    assert not is_nest(plain)
    assert former(plain) is None
    assert (row_like(plain).shape, row_like(plain).dtype) == ((2,), np.int64)


@pytest.mark.parametrize("inner", [spaces.Text(3), spaces.Box(0, 9, (2,), np.int32)])
def test_what_no_policy_can_do_inside_a_nest_is_named(inner: gym.Space[Any]) -> None:
    with pytest.raises(SpaceError) as caught:
        action_from_gym(spaces.Tuple((spaces.Discrete(2), spaces.Dict({"x": inner}))), "Odd-v0")
    assert f"Odd-v0 has {inner} inside" in str(caught.value)
    assert "a Box of floats work" in str(caught.value)


@pytest.mark.parametrize("space", [spaces.Tuple(()), spaces.Dict({}), spaces.Dict({"inner": spaces.Tuple(())})])
def test_a_nest_with_nothing_inside_is_refused(space: gym.Space[Any]) -> None:
    with pytest.raises(SpaceError, match="Odd-v0 .*nothing to decide inside"):
        action_from_gym(space, "Odd-v0")


class Taker(gym.Env[Any, Any]):
    """Takes what its space contains and nothing else, and shows its sum."""

    def __init__(self, space: gym.Space[Any]) -> None:
        self.observation_space = spaces.Box(-1e4, 1e4, (1,), np.float32)
        self.action_space = space
        self.got: list[Any] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action), action
        self.got.append(action)
        return np.array([gym.spaces.flatten(self.action_space, action).sum()], np.float32), 0.0, False, False, {}


@pytest.mark.parametrize("name", NESTS)
def test_worlds_of_envs_and_of_vector_envs_hand_the_same_actions_over(name: str) -> None:
    space, rng = NESTS[name], np.random.default_rng(1)
    single = make_world(lambda: Taker(space), 3)
    vector = VectorWorld(SyncVectorEnv([lambda: Taker(space)] * 3))
    assert single.action == vector.action
    single.reset(0)
    vector.reset(0)
    for _ in range(5):
        rows = rows_of(single.action, 3, rng)
        one, two = single.step(rows), vector.step(rows)
        assert np.array_equal(one.view.obs["obs"], two.view.obs["obs"])
