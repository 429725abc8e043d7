"""Learning a game for two by playing it against oneself, now and as one was."""

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
    """A training in a `SeatWorld` whose opponents are a `Pool`; the learner and the collector know nothing of it.

    `training.state()` holds all of it, so a checkpoint of it goes on to the last bit. Iterating gives a report an update.
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
    """A world in which `policy` meets itself and its past, and the pool of those; for a Collector or PPO(policy, world)."""
    pool = Pool(policy, num_envs, config)
    return SeatWorld(game, num_envs, pool, name), pool


@dataclass(frozen=True, slots=True)
class Match:
    """What came of some games between two, told by the first."""

    wins: int
    draws: int
    losses: int

    @property
    def games(self) -> int:
        return self.wins + self.draws + self.losses

    @property
    def score(self) -> float:
        """Mean points: a win 1, a draw ½."""
        return (self.wins + self.draws / 2) / self.games

    @property
    def interval(self) -> tuple[float, float]:
        """95 % of the score."""
        return wilson(self.score, self.games)


def play_match(
    game: Game, one: Policy | Player, two: Policy | Player, games: int, *, seed: int = 0, deterministic: bool = False
) -> Match:
    """`games` games, each side first in half of them; moves are drawn, as two who always do the likeliest play two games."""
    if games < 2 or games % 2:
        raise ConfigError(f"games is {games}; each side begins in half of them, so it must be even")
    noise = Noise(seed)
    players = [x if isinstance(x, Player) else Player(x) for x in (one, two)]
    for player in players:
        player.refresh()
    boards, running = game.start(games), np.arange(games)
    mover = np.arange(games) % 2
    """Who moves next on each running board."""
    points = np.zeros(games)
    while len(running):
        move = np.empty(len(running), np.int64)
        for side, player in enumerate(players):
            rows = np.flatnonzero(mover == side)
            if len(rows):
                view = View(obs={"obs": game.observe(boards[:, rows])}, action_mask=game.mask(boards[:, rows]))
                move[rows] = player.moves(view, noise, deterministic=deterministic)
        boards, over, score = game.play(boards, move)
        points[running[over]] = np.where(mover == 0, score, -score)[over]
        boards, running, mover = boards[:, ~over], running[~over], 1 - mover[~over]
    return Match(int((points > 0).sum()), int((points == 0).sum()), int((points < 0).sum()))
