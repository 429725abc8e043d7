"""Boards against a second definition of a line, and copies of a world that do not touch each other."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.envs.agents.pettingzoo import agents_world
from surefoot.envs.agents.two_player import SeatWorld
from surefoot.envs.builtin.connect_four import Connect
from surefoot.envs.builtin.multi_agent_toys import Relay
from surefoot.train.algorithms.ratings import after_game, expected, wilson


def lines(board: np.ndarray, length: int) -> bool:
    """True if `board` [rows, columns] holds a line, by looking at every cell and direction."""
    rows, columns = board.shape
    for r in range(rows):
        for c in range(columns):
            for dr, dc in ((0, 1), (1, 0), (1, 1), (1, -1)):
                cells = [(r + k * dr, c + k * dc) for k in range(length)]
                if all(0 <= i < rows and 0 <= j < columns and board[i, j] for i, j in cells):
                    return True
    return False


sizes = st.sampled_from([(6, 7, 4), (5, 5, 3), (4, 5, 4), (3, 4, 3), (7, 8, 5)])


@settings(deadline=None, max_examples=60)
@given(size=sizes, seed=st.integers(0, 2**32))
def test_a_game_ends_where_a_plain_search_finds_a_line_or_no_room(size: tuple[int, int, int], seed: int):
    rows, columns, line = size
    game, rng = Connect(*size), np.random.default_rng(seed)
    state, board, mirror = game.start(1), np.zeros((rows, columns), int), game.start(1)
    mover, over = 1, np.zeros(1, bool)
    while not over[0]:
        column = int(rng.choice(np.flatnonzero(game.mask(state)[0])))
        state, over, score = game.play(state, np.array([column]))
        mirror, over_there, _ = game.play(mirror, np.array([columns - 1 - column]))
        board[int((board[:, column] != 0).sum()), column] = mover
        assert bool(score[0]) == lines(board == mover, line)
        assert over[0] == over_there[0] == (bool(score[0]) or bool((board != 0).all()))
        seen, there = (game.observe(x)[0].reshape(2, rows, columns) for x in (state, mirror))
        assert np.array_equal(seen[0], board == -mover)
        assert np.array_equal(seen[1], board == mover)
        assert np.array_equal(seen[:, :, ::-1], there), "a mirrored game looks mirrored"
        mover = -mover


@settings(deadline=None, max_examples=30)
@given(
    runners=st.integers(2, 4),
    stride=st.integers(1, 3),
    extra=st.integers(0, 5),
    limit=st.one_of(st.none(), st.integers(1, 12)),
    copies=st.integers(1, 3),
    seed=st.integers(0, 2**31),
)
def test_a_copy_among_others_does_what_it_does_alone(
    runners: int, stride: int, extra: int, limit: int | None, copies: int, seed: int
):
    life = min(stride + extra, runners * stride - 1)
    build = lambda: Relay(runners, life=life, stride=stride, limit=limit)  # noqa: E731
    if life < stride:
        return
    world = agents_world(build, copies)
    view, rng = world.reset(seed), np.random.default_rng(seed)
    alone, there = [build() for _ in range(copies)], [{} for _ in range(copies)]
    for c, env in enumerate(alone):
        there[c], _ = env.reset(world_seed(seed, c, 0))
    episodes = [1] * copies
    for _ in range(25):
        action = rng.integers(2, size=world.num_envs)
        step = world.step(action)
        for c, env in enumerate(alone):
            acting = {a: action[c * runners + i] for i, a in enumerate(env.possible_agents) if a in env.agents}
            obs, reward, terminated, truncated, _ = env.step(acting)
            if not env.agents:
                obs, _ = env.reset(world_seed(seed, c, episodes[c]))
                episodes[c] += 1
            for i, agent in enumerate(env.possible_agents):
                row = c * runners + i
                assert step.valid[row] == (agent in acting)
                assert step.reward[row] == reward.get(agent, 0.0)
                assert step.terminated[row] == terminated.get(agent, False)
                assert step.truncated[row] == truncated.get(agent, False)
                expected_obs = obs[agent] if agent in env.agents else np.zeros(3)
                assert np.array_equal(step.view.obs["obs"][row], expected_obs)
        view = step.view
    assert view.obs["obs"].shape == (copies * runners, 3)


def world_seed(seed: int, copy: int, episode: int) -> int:
    return int(np.random.SeedSequence([seed, copy, episode]).generate_state(1)[0]) >> 1


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**31), boards=st.integers(1, 6))
def test_a_world_of_two_seats_goes_on_from_its_state(seed: int, boards: int):
    world, again = (SeatWorld(Connect(4, 4, 3), boards) for _ in range(2))
    view, rng = world.reset(seed), np.random.default_rng(seed)

    def move() -> np.ndarray:
        return np.where(view.action_mask, rng.random(view.action_mask.shape), -1).argmax(axis=1)

    for _ in range(5):
        view = world.step(move()).view
    again.set_state(world.state())
    for _ in range(10):
        action = move()
        one, two = world.step(action), again.step(action)
        view = one.view
        assert np.array_equal(one.view.obs["obs"], two.view.obs["obs"])
        assert one.reward.tolist() == two.reward.tolist()


@given(st.floats(0, 3000), st.floats(0, 3000), st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 64))
def test_ratings_are_only_handed_over(one: float, two: float, score: float, k: float):
    after, other = after_game(one, two, score, k)
    assert np.isclose(after + other, one + two)
    assert np.isclose(expected(one, two) + expected(two, one), 1.0)


@given(st.floats(0, 1), st.integers(1, 10_000))
def test_wilsons_interval_holds_the_score_and_stays_within_bounds(score: float, games: int):
    low, high = wilson(score, games)
    assert 0.0 <= low <= score + 1e-12
    assert score - 1e-12 <= high <= 1.0
