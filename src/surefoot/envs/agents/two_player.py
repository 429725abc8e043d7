"""`SeatWorld`: a two-player game as a single-agent world; opponents move inside `step`.

A step is the learner's move and the reply to it, so every row of a stream is a decision of the learner. The first move
alternates by episode. `train.algorithms.opponents` has opponents that learn; here are only random ones.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from surefoot.data.spaces import ActionSpace, Box, Discrete
from surefoot.envs.api import Arrays, Step, View, World
from surefoot.envs.gym.snapshot import rng_from_json, rng_to_json
from surefoot.errors import CheckpointIncompatible, ConfigError


class Game(Protocol):
    """The rules for n boards in parallel. A state is one array [S, n], from the side of the player to move."""

    observation: Box
    action: Discrete

    def start(self, n: int) -> np.ndarray:
        """Return n boards before the first move."""
        ...

    def play(self, state: np.ndarray, action: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the boards from the other player's side, [n] bool over, and the mover's score [n] float64, -1 to 1."""
        ...

    def observe(self, state: np.ndarray) -> np.ndarray:
        """Return the observations of the player to move, [n, …] float32."""
        ...

    def mask(self, state: np.ndarray) -> np.ndarray:
        """Return the legal moves of the player to move, [n, A] bool."""
        ...


class Opponents(Protocol):
    """The opponents in N streams."""

    def meet(self, streams: np.ndarray) -> None:
        """Choose the opponents of the new games in `streams` (indices)."""

    def reply(self, view: View, streams: np.ndarray) -> np.ndarray:
        """Return the moves [n] for the n boards in `streams` (indices)."""
        ...

    def score(self, streams: np.ndarray, score: np.ndarray) -> None:
        """Record the learner's `score`, -1 to 1, of the games that ended in `streams` (indices)."""

    def passed(self, steps: int) -> None:
        """Record that the learner took this many more steps."""

    def reset(self, seed: int) -> None:
        """Start again; all randomness follows from `seed`."""
        ...

    def state(self) -> dict[str, Any]: ...

    def set_state(self, state: dict[str, Any]) -> None: ...


class RandomOpponents(Opponents):
    """Play uniformly random legal moves."""

    def __init__(self) -> None:
        self.reset(0)

    def reset(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def reply(self, view: View, streams: np.ndarray) -> np.ndarray:
        assert view.action_mask is not None
        return np.where(view.action_mask, self.rng.random(view.action_mask.shape), -1.0).argmax(axis=1)

    def state(self) -> dict[str, Any]:
        return {"rng": rng_to_json(self.rng)}

    def set_state(self, state: dict[str, Any]) -> None:
        self.rng = rng_from_json(state["rng"])


class SeatWorld(World):
    """N boards of a game. At the end a win pays 1, a loss -1 and a draw 0; the stat `success` is 1 for a win.

    Args:
        game: The rules.
        num_envs: Number of boards.
        opponents: Who plays the other side; None for random legal moves.
        name: Name of the world; None for the game's class name.
    """

    def __init__(self, game: Game, num_envs: int, opponents: Opponents | None = None, name: str | None = None) -> None:
        if num_envs < 1:
            raise ConfigError(f"num_envs is {num_envs}; a world needs at least 1 board")
        self.game, self.num_envs = game, num_envs
        self.name = name or type(game).__name__
        self.opponents = opponents or RandomOpponents()
        self.observation = {"obs": game.observation}
        self.action: ActionSpace = game.action
        self._boards = game.start(num_envs)
        self._second = np.zeros(num_envs, np.bool_)
        """Where the opponent has the first move in the current game."""

    def reset(self, seed: int) -> View:
        self.opponents.reset(seed)
        self._second = np.arange(self.num_envs) % 2 == 0
        self._begin(np.arange(self.num_envs))
        return self._view(self._boards)

    def step(self, action: np.ndarray) -> Step:
        n, game = self.num_envs, self.game
        self.opponents.passed(n)
        boards, over, reward = game.play(self._boards, action)
        waiting = np.flatnonzero(~over)
        if len(waiting):
            boards[:, waiting], over[waiting], score = self._reply(boards[:, waiting], waiting)
            reward[waiting] = -score
        self._boards = boards
        ended, final_obs, stats = np.flatnonzero(over), None, Arrays()
        if len(ended):
            final_obs = {"obs": game.observe(boards)}
            stats = {"success": np.where(over, (reward > 0).astype(np.float64), np.nan)}
            self.opponents.score(ended, reward[ended])
            self._begin(ended)
        return Step(
            view=self._view(self._boards),
            reward=reward,
            terminated=over,
            truncated=np.zeros(n, np.bool_),
            valid=np.ones(n, np.bool_),
            final_obs=final_obs,
            stats=stats,
        )

    def reset_streams(self, streams: np.ndarray) -> View | None:
        self._begin(np.flatnonzero(streams))
        return self._view(self._boards)

    def state(self) -> dict[str, Any]:
        return {"boards": self._boards.copy(), "second": self._second.copy(), "opponents": self.opponents.state()}

    def set_state(self, state: dict[str, Any]) -> View:
        boards = np.array(state["boards"], self._boards.dtype)
        if boards.shape != self._boards.shape:
            raise CheckpointIncompatible(
                f"the state holds boards {list(boards.shape)}; {self.name} with {self.num_envs} streams needs "
                f"{list(self._boards.shape)}"
            )
        self._boards, self._second = boards, np.array(state["second"], np.bool_)
        self.opponents.set_state(state["opponents"])
        return self._view(self._boards)

    def _begin(self, streams: np.ndarray) -> None:
        """Start new games in `streams` with the other player first; where that is the opponent, it has moved."""
        self._boards[:, streams] = self.game.start(len(streams))
        self._second[streams] = ~self._second[streams]
        self.opponents.meet(streams)
        late = streams[self._second[streams]]
        if len(late):
            self._boards[:, late], over, _ = self._reply(self._boards[:, late], late)
            assert not over.any(), "a game was over after one move"

    def _reply(self, boards: np.ndarray, streams: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.game.play(boards, self.opponents.reply(self._view(boards), streams))

    def _view(self, boards: np.ndarray) -> View:
        return View(obs={"obs": self.game.observe(boards)}, action_mask=self.game.mask(boards))
