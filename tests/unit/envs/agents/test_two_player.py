"""A game for two as a world of one: whose turn it is, who is paid, who begins; against opponents that follow a script."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.envs.agents.two_player import RandomOpponents, SeatWorld
from surefoot.envs.builtin.connect_four import Connect
from surefoot.errors import CheckpointIncompatible, ConfigError


class Script(RandomOpponents):
    """Always plays one column, and writes down what it is told."""

    def __init__(self, column: int) -> None:
        super().__init__()
        self.column, self.met, self.scores = column, [], []

    def meet(self, streams):
        self.met.append(streams.tolist())

    def reply(self, view, streams):
        return np.full(len(streams), self.column)

    def score(self, streams, score):
        self.scores.append((streams.tolist(), score.tolist()))


def test_a_step_is_my_move_and_the_reply():
    world = SeatWorld(Connect(), 1, Script(6))
    view = world.reset(0)
    assert not view.obs["obs"].any(), "the learner begins"
    step = world.step(np.array([0]))
    seen = step.view.obs["obs"][0].reshape(2, 6, 7)
    assert (seen[0, 0, 0], seen[1, 0, 6], seen.sum()) == (1, 1, 2)
    assert step.reward.tolist() == [0.0]


def test_a_win_pays_one_and_the_next_game_is_begun_by_the_other():
    opponents = Script(6)
    world = SeatWorld(Connect(), 1, opponents)
    world.reset(0)
    for column in (0, 0, 0):
        step = world.step(np.array([column]))
        assert not step.terminated[0]
    step = world.step(np.array([0]))
    assert (step.reward[0], step.terminated[0], step.stats["success"][0]) == (1.0, True, 1.0)
    assert opponents.scores == [([0], [1.0])]
    assert opponents.met == [[0], [0]]
    seen = step.view.obs["obs"][0].reshape(2, 6, 7)
    assert (seen[0].sum(), seen[1, 0, 6], seen[1].sum()) == (0, 1, 1), "the other one has begun"


def test_a_loss_pays_minus_one_and_nobody_replies_to_a_game_that_is_over():
    opponents = Script(6)
    world = SeatWorld(Connect(), 1, opponents)
    world.reset(0)
    for column in (0, 1, 2):
        step = world.step(np.array([column]))
    assert not step.terminated[0]
    step = world.step(np.array([5]))
    assert (step.reward[0], step.terminated[0], step.stats["success"][0]) == (-1.0, True, 0.0)
    assert opponents.scores == [([0], [-1.0])]
    assert step.final_obs is not None
    assert step.final_obs["obs"][0].sum() == 8


def test_a_draw_pays_nothing():
    # 2 × 3 with lines of three: 0 1, 2 2, 1 0 fills the board; the replies come from a list.
    class Replies(Script):
        def reply(self, view, streams):
            return np.array([[1, 2, 0].pop(int(view.obs["obs"].sum()) // 2)])

    world = SeatWorld(Connect(2, 3, 3), 1, Replies(0))
    world.reset(0)
    for column in (0, 2, 1):
        step = world.step(np.array([column]))
    assert (step.reward[0], step.terminated[0]) == (0.0, True)
    assert step.stats["success"][0] == 0.0


def test_sides_alternate_from_game_to_game_and_from_board_to_board():
    world = SeatWorld(Connect(), 4, Script(6))
    view = world.reset(0)
    begun = view.obs["obs"].reshape(4, 2, 42)[:, 1].sum(axis=1)
    assert begun.tolist() == [0, 1, 0, 1], "where the other one has a stone, it began"


def test_a_stream_can_begin_again_by_itself():
    world = SeatWorld(Connect(), 2, Script(6))
    world.reset(0)
    world.step(np.array([0, 0]))
    view = world.reset_streams(np.array([True, False]))
    assert view is not None
    assert view.obs["obs"].reshape(2, 84).sum(axis=1).tolist() == [1, 3]


def test_players_by_chance_are_fair_to_both_sides():
    world = SeatWorld(Connect(3, 3, 3), 64)
    view, rng, points = world.reset(1), np.random.default_rng(0), []
    for _ in range(400):
        step = world.step(np.where(view.action_mask, rng.random(view.action_mask.shape), -1).argmax(axis=1))
        view = step.view
        points += step.reward[step.terminated].tolist()
    # Standard error is below 1 / sqrt(4000) = 0.016.
    assert len(points) > 4000
    assert abs(np.mean(points)) < 0.06


def test_a_state_of_another_number_of_boards_is_refused():
    with pytest.raises(CheckpointIncompatible, match=r"boards \[2, 3\]"):
        SeatWorld(Connect(), 2).set_state(SeatWorld(Connect(), 3).state())
    with pytest.raises(ConfigError, match="num_envs is 0"):
        SeatWorld(Connect(), 0)
