"""Self-play: learn a two-player game against the current policy and its past versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.envs.agents.two_player import Game, SeatWorld
from surefoot.envs.api import View
from surefoot.errors import ConfigError
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.policy import Policy
from surefoot.train.algorithms.opponents import Noise, Player, Pool, SelfPlayConfig
from surefoot.train.algorithms.ratings import wilson
from surefoot.train.spec import make_spec
from surefoot.train.training import Training


class SelfPlay:
    """Train a policy in a `SeatWorld` whose opponents come from a `Pool`. Iterating yields one report per update.

    `training.state()` includes the pool, so a resumed run is bit-exact.

    Args:
        game: The two-player game.
        total_steps: Env steps to train for.
        config: Choice of the opponents.
        settings: Settings of PPO, the network and collection, by name.
        preset: Name of the preset that provides the other settings.
        name: Name of the environment; None for the class name of the game.
        policy: The policy to train; None builds the standard one.
    """

    def __init__(
        self,
        game: Game,
        *,
        total_steps: int,
        config: SelfPlayConfig | None = None,
        settings: Mapping[str, Any] | None = None,
        preset: str | None = None,
        name: str | None = None,
        policy: Policy | None = None,
    ) -> None:
        self.game = game
        name = name or type(game).__name__
        self.spec = make_spec(
            name, game.action, settings=settings, preset_name=preset, total_steps=total_steps, eval_every=0
        )
        policy = policy or ActorCritic({"obs": game.observation}, game.action, self.spec.net, seed=self.spec.seed)
        self.world, self.pool = self_play_world(game, policy, self.spec.ppo.envs, config, name=name)
        self.training = Training(self.spec, world=self.world, policy=policy)
        self.policy = policy

    def __iter__(self) -> Training:
        return self.training


def self_play_world(
    game: Game, policy: Policy, num_envs: int, config: SelfPlayConfig | None = None, *, name: str | None = None
) -> tuple[SeatWorld, Pool]:
    """Return an environment in which `policy` plays against itself and its past versions, and the pool of those."""
    pool = Pool(policy, num_envs, config)
    return SeatWorld(game, num_envs, pool, name), pool


@dataclass(frozen=True, slots=True)
class Match:
    """Results of games between two players, counted for the first."""

    wins: int
    draws: int
    losses: int

    @property
    def games(self) -> int:
        return self.wins + self.draws + self.losses

    @property
    def score(self) -> float:
        """Mean score: a win counts 1, a draw ½."""
        return (self.wins + self.draws / 2) / self.games

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the score."""
        return wilson(self.score, self.games)


def play_match(
    game: Game, one: Policy | Player, two: Policy | Player, games: int, *, seed: int = 0, deterministic: bool = False
) -> Match:
    """Play `games` games, each player first in half of them, and return the results.

    Moves are sampled by default: two deterministic players would repeat the same two games.
    """
    if games < 2 or games % 2:
        raise ConfigError(
            f"games is {games}; it must be even and at least 2, because each player begins in half of the games"
        )
    noise = Noise(seed)
    players = [x if isinstance(x, Player) else Player(x) for x in (one, two)]
    # The weights may have changed since a Player was made.
    for player in players:
        player.refresh()
    boards, running = game.start(games), np.arange(games)
    # The player who moves next on each running board.
    mover = np.arange(games) % 2
    points = np.zeros(games)
    while len(running):
        move = np.empty(len(running), np.int64)
        for side, player in enumerate(players):
            rows = np.flatnonzero(mover == side)
            if len(rows):
                view = View(obs={"obs": game.observe(boards[:, rows])}, action_mask=game.mask(boards[:, rows]))
                move[rows] = player.moves(view, noise, deterministic=deterministic)
        boards, over, score = game.play(boards, move)
        # `score` is that of the player who moved; `points` are those of the first player.
        points[running[over]] = np.where(mover == 0, score, -score)[over]
        boards, running, mover = boards[:, ~over], running[~over], 1 - mover[~over]
    return Match(int((points > 0).sum()), int((points == 0).sum()), int((points < 0).sum()))
