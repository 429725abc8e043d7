"""A worker's share of the envs, without a process around it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from surefoot.envs.gym.nested_actions import row_like
from surefoot.envs.gym.single_envs import EnvsWorld
from surefoot.envs.workers.shared_memory import Board, new_memory, open_board
from surefoot.envs.workers.worker import Place, Share
from surefoot.errors import SpaceError


def cartpole() -> gym.Env[Any, Any]:
    return gym.make("CartPole-v1")


@pytest.fixture
def memory() -> Iterator[int]:
    file = new_memory()
    yield file
    os.close(file)


def board_of(memory: int, world: EnvsWorld, streams: int) -> Board:
    action = row_like(world.gym_spaces[1])
    return open_board(memory, streams, 2, observation=world.observation, action=action, choices=2)


def test_a_share_writes_its_rows_of_the_board_as_a_world_of_its_own_would(memory: int):
    share, alone = Share(memory), EnvsWorld([cartpole] * 2)
    hello = share.build([cartpole] * 2, None, 1)
    assert (hello.name, hello.inexact) == ("CartPole-v1", None)
    share.open(3, 2, 1)
    board = board_of(memory, alone, 3)
    share.reset(5)
    assert np.array_equal(board.obs["obs"][1:], alone.reset(5).obs["obs"])
    board.action[:] = 1
    share.step()
    step = alone.step(np.array([1, 1]))
    assert np.array_equal(board.obs["obs"][1:], step.view.obs["obs"])
    assert board.reward.tolist() == [0.0, 1.0, 1.0]
    assert not board.ended.any()
    share.close()


def test_a_worker_that_takes_over_must_have_the_same_spaces(memory: int):
    spaces = (gym.spaces.Discrete(3), gym.spaces.Discrete(2))
    place = Place(name="it", number=1, first=0, streams=1, shares=1, seed=0, gym_spaces=spaces)
    with pytest.raises(
        SpaceError, match=r"env 0 of it, built again, has the spaces .Box.*the first one had .*Discrete\(3\)"
    ):
        Share(memory).join(place, [cartpole])
