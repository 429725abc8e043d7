"""Gymnasium's spaces, observations, actions and infos as the engine's arrays."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from surefoot.data.spaces import Box, Discrete, MultiDiscrete
from surefoot.envs.gym.spaces import (
    action_from_gym,
    action_writer,
    column,
    observation_from_gym,
    observation_reader,
    read_mask,
)
from surefoot.errors import EnvError, SpaceError


def test_a_box_observation_is_called_obs_and_becomes_float32() -> None:
    space = spaces.Box(np.array([-1.0, -np.inf]), np.array([1.0, np.inf]), dtype=np.float64)
    assert observation_from_gym(space) == {"obs": Box((2,), (-1.0, -np.inf), (1.0, np.inf), "float32")}


def test_an_observation_without_numbers_is_refused() -> None:
    for space in (spaces.Box(-1, 1, (0,)), spaces.Dict({"a": spaces.Box(-1, 1, (3,)), "b": spaces.Box(-1, 1, (2, 0))})):
        with pytest.raises(SpaceError, match=r"of Bandit has no numbers.*constant"):
            observation_from_gym(space, "Bandit")


def test_a_part_of_text_is_refused_with_the_wrapper_that_leaves_it_out() -> None:
    space = spaces.Dict({"image": spaces.Box(0, 255, (7, 7, 3), np.uint8), "mission": spaces.Text(9)})
    with pytest.raises(SpaceError, match="'mission' of MiniGrid is Text.*FilterObservation leaves 'mission' out"):
        observation_from_gym(space, "MiniGrid")


def test_an_image_of_bytes_stays_bytes() -> None:
    space = spaces.Box(0, 255, (84, 84, 4), np.uint8)
    assert observation_from_gym(space) == {"obs": Box((84, 84, 4), 0.0, 255.0, "uint8")}
    reader = observation_reader(space)
    out = reader.empty(1)
    reader.write(out, 0, np.full((84, 84, 4), 200, np.uint8))
    assert out["obs"].dtype == np.uint8
    assert (out["obs"] == 200).all()


def test_a_discrete_observation_is_one_hot_counted_from_its_start() -> None:
    reader = observation_reader(spaces.Discrete(4, start=2))
    assert reader.space == {"obs": Box((4,), 0.0, 1.0)}
    out = reader.empty(3)
    reader.write(out, slice(None), np.array([2, 5, 3]))
    assert out["obs"].tolist() == [[1, 0, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0]]
    reader.write(out, 0, 4)
    assert out["obs"][0].tolist() == [0, 0, 1, 0]


def test_several_choices_and_bits_are_flattened() -> None:
    reader = observation_reader(
        spaces.Dict({"m": spaces.MultiDiscrete([2, 3]), "b": spaces.MultiBinary((2, 2)), "x": spaces.Box(0, 1, ())})
    )
    assert {name: box.shape for name, box in reader.space.items()} == {"b": (4,), "m": (5,), "x": (1,)}
    out = reader.empty(2)
    reader.write(out, 1, {"m": np.array([1, 0]), "b": np.array([[1, 0], [0, 1]]), "x": np.float32(0.5)})
    assert out["m"][1].tolist() == [0, 1, 1, 0, 0]
    assert out["b"][1].tolist() == [1, 0, 0, 1]
    assert out["x"][1].tolist() == [0.5]
    batch = {"m": np.array([[0, 2], [1, 1]]), "b": np.zeros((2, 2, 2)), "x": np.array([0.25, 0.75])}
    reader.write(out, slice(None), batch)
    assert out["m"].tolist() == [[1, 0, 0, 0, 1], [0, 1, 0, 1, 0]]
    assert out["x"].tolist() == [[0.25], [0.75]]


@pytest.mark.parametrize(
    "space", [spaces.Text(5), spaces.Tuple((spaces.Discrete(2),)), spaces.Dict({"inner": spaces.Dict({})})]
)
def test_an_unsupported_observation_is_refused_with_what_works(space: gym.Space[Any]) -> None:
    with pytest.raises(SpaceError, match=r"Odd-v0 .*; Box, Discrete, MultiDiscrete"):
        observation_from_gym(space, "Odd-v0")


def test_action_spaces_keep_what_a_policy_needs() -> None:
    assert action_from_gym(spaces.Discrete(3, start=-1)) == Discrete(3, -1)
    assert action_from_gym(spaces.MultiDiscrete([[2, 3], [4, 5]])) == MultiDiscrete((2, 3, 4, 5))
    assert action_from_gym(spaces.MultiBinary(3)) == MultiDiscrete((2, 2, 2))
    assert action_from_gym(spaces.Box(-2.0, 2.0, (3,))) == Box((3,), -2.0, 2.0)


@pytest.mark.parametrize(
    "space", [spaces.Box(0, 9, (2,), np.int32), spaces.Text(3), spaces.Sequence(spaces.Discrete(2))]
)
def test_an_unsupported_action_space_is_refused_with_what_works(space: gym.Space[Any]) -> None:
    works = "Discrete, MultiDiscrete, MultiBinary, a Box of floats, and Dicts and Tuples of those work"
    with pytest.raises(SpaceError, match=rf"Odd-v0 .*; {works}"):
        action_from_gym(space, "Odd-v0")


def test_actions_reach_gymnasium_in_its_own_shape_and_as_a_copy() -> None:
    flat = np.array([[1, 0, 1, 1]])
    assert action_writer(spaces.MultiBinary((2, 2)))(flat).tolist() == [[[1, 0], [1, 1]]]
    assert action_writer(spaces.MultiDiscrete([2, 2], start=[5, 7]))(np.array([[0, 1]])).tolist() == [[5, 8]]
    action = np.array([[0.5]], np.float32)
    written = action_writer(spaces.Box(-1, 1, (1,)))(action)
    written[:] = 9.0
    assert action.tolist() == [[0.5]]


def test_choices_that_are_handed_out_one_by_one_are_not_copied_and_everything_else_is() -> None:
    choices, reach = np.array([1, 0]), np.array([[0.5]], np.float32)
    assert action_writer(spaces.Discrete(2), shared=True)(choices) is choices
    assert action_writer(spaces.Discrete(2, dtype=np.int32), shared=True)(choices).dtype == np.int32
    assert action_writer(spaces.Discrete(2))(choices) is not choices
    assert action_writer(spaces.Box(-1, 1, (1,)), shared=True)(reach) is not reach


def test_an_action_does_not_step_over_a_bound_that_only_a_float64_can_tell() -> None:
    space = spaces.Box(-0.1, 0.1, (2,), np.float64)
    action = np.array([[0.1, -0.1]], np.float32)  # as a policy clips it: 0.1000000015
    assert not space.contains(action[0].astype(np.float64))
    assert space.contains(action_writer(space)(action)[0])


def test_choices_count_from_the_start_of_their_space() -> None:
    write = action_writer(spaces.Discrete(3, start=4))
    assert write(np.array([4, 6])).tolist() == [4, 6]
    with pytest.raises(EnvError, match=r"4…6"):
        write(np.array([0, 4]))


def test_infos_of_either_format_give_the_same_column() -> None:
    new = column({"score": np.array([3.0, 0.0]), "_score": np.array([True, False])}, "score", 2)
    old = column(np.array([{"score": 3.0}, None]), "score", 2)
    assert new is not None
    assert old is not None
    assert new[1].tolist() == old[1].tolist() == [True, False]
    assert new[0][0] == old[0][0] == 3.0
    assert column({}, "score", 2) is None


def test_a_mask_per_head_is_one_row() -> None:
    assert read_mask((np.array([1, 0]), np.array([0, 1, 1])), 5, "it").tolist() == [True, False, False, True, True]
