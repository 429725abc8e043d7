"""A worker process that steps its share of a world's envs on command. Numpy and Gymnasium only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from surefoot.data.spaces import ActionSpace, ObservationSpace
from surefoot.envs.api import View
from surefoot.envs.gym.nested_actions import row_like
from surefoot.envs.gym.single_envs import REPORTS, EnvsWorld, SingleEnv
from surefoot.envs.gym.spaces import choices
from surefoot.envs.workers.shared_memory import Board, open_board
from surefoot.envs.workers.worker_process import serve
from surefoot.errors import SpaceError


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """Properties of a worker's envs, sent after they are built."""

    name: str
    observation: ObservationSpace
    action: ActionSpace
    gym_spaces: tuple[gym.Space[Any], gym.Space[Any]]
    inexact: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What a worker needs to replace another one."""

    name: str
    number: int
    first: int
    """Its first stream, of `streams` streams in `shares` shares."""
    streams: int
    shares: int
    seed: int
    gym_spaces: tuple[gym.Space[Any], gym.Space[Any]]


class Share:
    """The envs of one worker; its public methods are the commands of the parent."""

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self._world: EnvsWorld | None = None

    def build(self, env_fns: Sequence[Callable[[], SingleEnv]], name: str | None, first: int) -> Hello:
        self._world = world = EnvsWorld(env_fns, name, first=first)
        return Hello(
            name=world.name,
            observation=world.observation,
            action=world.action,
            gym_spaces=world.gym_spaces,
            inexact=world.inexact,
        )

    def open(self, streams: int, shares: int, number: int) -> None:
        world, space = self.world, self.world.gym_spaces[1]
        board = open_board(
            self._memory,
            streams,
            shares,
            observation=world.observation,
            action=row_like(space),
            choices=choices(world.action),
        )
        self._board: Board = board.share(world.first, world.num_envs)
        self._number = number

    def join(self, place: Place, env_fns: Sequence[Callable[[], SingleEnv]]) -> None:
        """Replace a worker that has ended: build new envs and start new episodes."""
        hello = self.build(env_fns, place.name, place.first)
        if hello.gym_spaces != place.gym_spaces:
            raise SpaceError(
                f"env {place.first} of {place.name}, built again, has the spaces {hello.gym_spaces}; the first one had "
                f"{place.gym_spaces}"
            )
        self.open(place.streams, place.shares, place.number)
        self.reset(place.seed)

    @property
    def world(self) -> EnvsWorld:
        assert self._world is not None
        return self._world

    def step(self) -> None:
        board, number = self._board, self._number
        step = self.world.take(board.action.copy())
        self._show(step.view)
        board.reward[:] = step.reward
        board.terminated[:] = step.terminated
        board.truncated[:] = step.truncated
        board.ended[number] = step.final_obs is not None
        for name, part in (step.final_obs or {}).items():
            board.final[name][:] = part
        for kind, name in enumerate(REPORTS.values()):
            board.reported[number, kind] = name in step.stats
            if name in step.stats:
                board.reports[:, kind] = step.stats[name]

    def reset(self, seed: int) -> None:
        self._show(self.world.reset(seed))

    def reset_streams(self, streams: np.ndarray) -> None:
        view = self.world.reset_streams(streams)
        assert view is not None
        self._show(view)

    def state(self) -> list[Any]:
        return self.world.state()["envs"]

    def set_state(self, state: dict[str, Any]) -> None:
        self._show(self.world.set_state(state))

    def render(self) -> np.ndarray | None:
        return self.world.render()

    def close(self) -> None:
        if self._world is not None:
            self._world.close()

    def _show(self, view: View) -> None:
        board = self._board
        for name, part in view.obs.items():
            board.obs[name][:] = part
        board.masked[self._number] = view.action_mask is not None
        if view.action_mask is not None:
            board.mask[:] = view.action_mask


def main(pipe: int, memory: int) -> None:
    """Serve a share of a world's envs."""
    serve(pipe, memory, Share(memory))
