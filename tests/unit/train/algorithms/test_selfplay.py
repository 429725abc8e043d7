"""Self-play: who is chosen, how they are rated, and that all of it goes on from a checkpoint."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from surefoot import PPO, ActorCritic
from surefoot.envs.agents.two_player import SeatWorld
from surefoot.envs.api import View
from surefoot.envs.builtin.connect_four import Connect
from surefoot.errors import ConfigError
from surefoot.learn.checkpoint.checkpoint import load_checkpoint, save_checkpoint
from surefoot.nets.config import NetConfig
from surefoot.train.algorithms.opponents import LATEST, Noise, Player, Pool, SelfPlayConfig, player_of, weights_of
from surefoot.train.algorithms.selfplay import Match, SelfPlay, play_match, self_play_world

GAME = Connect(4, 4, 3)
SMALL = {"envs": 8, "rollout_steps": 16, "minibatch_size": 64, "hidden": (16,)}


def small_policy(seed: int = 0) -> ActorCritic:
    return ActorCritic({"obs": GAME.observation}, GAME.action, NetConfig(hidden=(16,)), seed=seed)


def change(policy: ActorCritic) -> None:
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter += 0.1


def small(steps: int = 512, **config: object) -> SelfPlay:
    return SelfPlay(GAME, total_steps=steps, config=SelfPlayConfig(every=128, **config), settings=SMALL)


def prefer(column: int) -> ActorCritic:
    """A policy that all but always plays one column."""
    policy = small_policy()
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.zero_()
        # Feature k speaks for column k, and the hidden biases say which of them is on.
        policy.network.policy_out.weight[range(4), range(4)] = 20.0
    set_favourite(policy, column)
    return policy


def set_favourite(policy: ActorCritic, column: int) -> None:
    with torch.no_grad():
        policy.network.actor[0].bias.fill_(-5.0)
        policy.network.actor[0].bias[column] = 5.0


def test_past_selves_are_kept_every_so_many_steps_with_the_weights_of_then():
    policy = small_policy()
    pool = Pool(policy, 4, SelfPlayConfig(every=100))
    first = weights_of(policy)
    pool.passed(60)
    change(policy)
    pool.passed(60)
    assert [one.step for one in pool.past] == [0, 120]
    for name, x in weights_of(policy).items():
        assert np.array_equal(pool.past[1].weights[name], x)
        assert np.array_equal(pool.past[0].weights[name], first[name])


def test_beyond_its_size_a_pool_loses_the_one_between_the_closest_and_games_go_on():
    pool = Pool(small_policy(), 3, SelfPlayConfig(every=10_000, keep=3))
    for steps in (100, 10, 90):
        pool.steps += steps
        pool._opponent[:] = [0, 100, LATEST]
        pool.keep()
    # 0 100 110 200: around 100 lie 110 steps, around 110 lie 100.
    assert [one.step for one in pool.past] == [0, 100, 200]
    pool.steps += 10
    pool.keep()
    assert [one.step for one in pool.past] == [0, 100, 210]
    pool.steps += 1
    pool._opponent[:] = [0, 210, LATEST]
    pool.keep()
    assert [one.step for one in pool.past] == [0, 100, 211]
    assert pool._opponent.tolist() == [0, 211, LATEST]


@pytest.mark.parametrize(("latest", "share"), [(0.0, 0.0), (0.3, 0.3), (1.0, 1.0)])
def test_the_latest_is_met_as_often_as_asked(latest: float, share: float):
    pool = Pool(small_policy(), 5000, SelfPlayConfig(latest=latest))
    pool.meet(np.arange(5000))
    assert (pool._opponent == LATEST).mean() == pytest.approx(share, abs=0.03)


def test_past_selves_are_chosen_alike_or_by_their_expected_score():
    pool = Pool(small_policy(), 1, SelfPlayConfig(choice="uniform"))
    for steps, rating in ((1, 1400.0), (2, 1000.0)):
        pool.steps, pool.rating = steps, rating
        pool.keep()
    pool.rating = 1000.0
    assert pool.odds() == pytest.approx([1 / 3] * 3)
    pool.config = SelfPlayConfig(choice="elo")
    # Expected against 1000: 1/2, 10/11, 1/2.
    assert pool.odds() == pytest.approx([11 / 42, 20 / 42, 11 / 42])


def test_results_move_both_ratings_and_games_against_oneself_do_not():
    pool = Pool(small_policy(), 4, SelfPlayConfig(elo_k=32))
    pool._opponent[:] = [0, LATEST, 0, 0]
    pool.score(np.array([0, 1]), np.array([1.0, 1.0]))
    assert (pool.rating, pool.past[0].rating, pool.past[0].games) == (1016.0, 984.0, 1)
    pool.score(np.array([2]), np.array([0.0]))
    assert pool.rating < 1016.0, "a draw against a weaker one costs points"
    assert pool.rating + pool.past[0].rating == pytest.approx(2000.0)


def test_each_board_is_answered_by_the_one_who_sits_there():
    policy = prefer(0)
    pool = Pool(policy, 6, SelfPlayConfig())
    set_favourite(policy, 2)
    pool.steps = 7
    pool.keep()
    set_favourite(policy, 3)
    pool.passed(1)
    pool._opponent[:] = [0, 7, LATEST, 7, 0, LATEST]
    boards = GAME.start(6)
    view = View(obs={"obs": GAME.observe(boards)}, action_mask=GAME.mask(boards))
    assert pool.reply(view, np.arange(6)).tolist() == [0, 2, 3, 2, 0, 3]


def test_a_match_is_counted_for_the_first_and_each_begins_in_half_of_the_games():
    # Both stack one column of three: who begins wins, and each begins once in two.
    match = play_match(GAME, prefer(0), prefer(3), 40)
    assert (match.wins, match.draws, match.losses) == (20, 0, 20)
    assert match.score == 0.5
    assert Match(3, 2, 5).score == pytest.approx(0.4)
    with pytest.raises(ConfigError, match="games is 3"):
        play_match(GAME, prefer(0), prefer(1), 3)


def test_a_kernel_player_and_a_torch_player_do_the_same():
    policy = small_policy(3)
    change(policy)
    player, slow = Player(policy), Player(policy)
    slow.actor = None
    boards = GAME.start(5)
    view = View(obs={"obs": GAME.observe(boards)}, action_mask=GAME.mask(boards))
    fast = player.moves(view, Noise(0), deterministic=True)
    assert fast.tolist() == slow.moves(view, Noise(0), deterministic=True).tolist()
    assert len(set(slow.moves(view, Noise(0)).tolist())) > 1
    assert len(set(player.moves(view, Noise(0)).tolist())) > 1


def test_a_past_self_does_not_change_with_the_learner():
    policy = small_policy()
    past = player_of(policy, weights_of(policy))
    before = weights_of(past.policy)
    change(policy)
    assert all(np.array_equal(x, before[name]) for name, x in weights_of(past.policy).items())


def test_a_policy_with_memory_is_no_opponent():
    policy = small_policy()
    policy.sequential = True
    with pytest.raises(ConfigError, match="with memory"):
        Player(policy)


def test_a_checkpoint_goes_on_to_the_last_bit_with_pool_ratings_and_noise(tmp_path: Path):
    play = small(2048)
    for _ in range(4):
        play.training.update()
    save_checkpoint(tmp_path, 4, play.training.state())
    again = small(2048)
    again.training.set_state(load_checkpoint(tmp_path).parts)
    assert len(again.pool.past) > 2
    for _ in range(4):
        one, two = play.training.update(), again.training.update()
        assert one.policy_loss == two.policy_loss
    assert play.pool.table() == again.pool.table()
    for name, x in weights_of(play.policy).items():
        assert np.array_equal(x, weights_of(again.policy)[name])
    for a, b in zip(play.pool.past, again.pool.past, strict=True):
        assert (a.step, a.rating, a.games) == (b.step, b.rating, b.games)
        assert all(np.array_equal(x, b.weights[name]) for name, x in a.weights.items())


def test_the_facade_trains_in_a_self_play_world_and_loads_it_again(tmp_path: Path):
    def made() -> tuple[ActorCritic, SeatWorld, Pool]:
        policy = small_policy()
        return policy, *self_play_world(GAME, policy, 8, SelfPlayConfig(every=128))

    policy, world, pool = made()
    model = PPO(policy, world, n_steps=16, batch_size=64).learn(512)
    model.save(tmp_path / "model")
    policy, world, other = made()
    PPO.load(tmp_path / "model", env=world, policy=policy)
    assert other.table() == pool.table()
    assert pool.table().splitlines()[0].split() == ["rating", "env", "steps", "games"]


def test_knobs_are_checked():
    with pytest.raises(ConfigError, match="latest"):
        SelfPlayConfig(latest=1.5)
    with pytest.raises(ConfigError, match="choice"):
        SelfPlayConfig(choice="luck")
    assert SelfPlayConfig().to_json()["keep"] == 20
