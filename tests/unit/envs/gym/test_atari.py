"""The seven details of an Atari world (A1 to A7), each on a real game, against an emulator of the test's own."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from surefoot.envs.gym.atari import NOOPS, STACK, AtariGame, Shrink, is_atari
from surefoot.envs.make import backend_of, make_world
from surefoot.errors import ConfigError, EnvError
from surefoot.learn.presets import preset
from surefoot.train.collect.episodes import EpisodeLog
from surefoot.train.config import CollectConfig

ale_py = pytest.importorskip("ale_py")

BALL = 101
"""Where Breakout's memory keeps the height of the ball; 0 while none is in play."""
FIRE_FRAMES = 8
"""FIRE and the button after it, four frames each."""


def emulator(game: str, seed: int = 0) -> Any:
    ale = ale_py.ALEInterface()
    ale.setInt("random_seed", seed)
    ale.setFloat("repeat_action_probability", 0.0)
    ale.loadROM(ale_py.roms.get_rom_path(game))
    ale.reset_game()
    return ale


def mean_over_areas(picture: np.ndarray) -> np.ndarray:
    """The same by way of a picture large enough that both sizes divide it."""
    rows, columns = (np.gcd(n, 84) for n in picture.shape)
    large = np.repeat(np.repeat(picture, 84 // rows, 0), 84 // columns, 1)
    blocks = large.reshape(84, picture.shape[0] // rows, 84, picture.shape[1] // columns)
    return np.rint(blocks.mean((1, 3)))


def play_until_the_end(game: AtariGame, button: int = 0) -> tuple[float, dict[str, Any]]:
    """The raw rewards of a life, and the last info."""
    total = 0.0
    while True:
        _, reward, terminated, truncated, info = game.step(button)
        total += reward
        if terminated or truncated:
            return total, info


class Ends:
    """A generator that draws the least, then the greatest number that it may."""

    def __init__(self) -> None:
        self.drawn = 0

    def integers(self, low: int, high: int) -> int:
        self.drawn += 1
        return low if self.drawn == 1 else high - 1


def test_a1_a_game_begins_with_one_to_thirty_frames_of_nothing():
    game = AtariGame("freeway")  # which has no FIRE, so nothing else happens before the first step
    game.reset(seed=0)
    seen = set()
    for _ in range(40):
        game.reset()
        seen.add(game.ale.getEpisodeFrameNumber())
    assert seen <= set(range(1, NOOPS + 1))
    assert len(seen) > 15
    game.np_random = Ends()  # type: ignore[assignment]
    for frames in (1, 30):
        game.reset()
        assert game.ale.getEpisodeFrameNumber() == frames


def test_a1_what_is_done_in_these_frames_is_nothing():
    game = AtariGame("freeway")
    game.reset(seed=3)
    ale = emulator("freeway", 3)
    for _ in range(game.ale.getEpisodeFrameNumber()):
        ale.act(0)
    np.testing.assert_array_equal(game.ale.getRAM(), ale.getRAM())


def test_a2_an_action_is_held_for_four_frames_and_the_last_two_are_seen():
    game = AtariGame("freeway")
    game.reset(seed=1)
    ale = emulator("freeway", 1)
    for _ in range(game.ale.getEpisodeFrameNumber()):
        ale.act(0)
    rng, flicker = np.random.default_rng(0), 0
    for _ in range(60):
        button = int(rng.integers(3))
        obs, reward, *_ = game.step(button)
        earned, frames = 0, []
        for _ in range(4):
            earned += ale.act([0, 2, 5][button])  # nothing, up, down: Freeway's buttons
            frames.append(ale.getScreenGrayscale())
        assert reward == earned
        np.testing.assert_array_equal(obs[-1], mean_over_areas(np.maximum(frames[2], frames[3])))
        flicker += not np.array_equal(frames[2], frames[3])
    assert flicker > 30, "two frames that are alike would prove nothing"


def test_a3_a_lost_life_ends_the_episode_and_not_the_game():
    game = AtariGame("breakout")
    game.reset(seed=0)
    frames = []
    for lives in (4, 3, 2, 1):
        _, info = play_until_the_end(game)
        assert (info["lives"], np.isnan(info["whole_return"])) == (lives, True)
        before = game.ale.getEpisodeFrameNumber()
        _, info = game.reset()
        assert info["lives"] == lives
        assert game.ale.getEpisodeFrameNumber() == before + 4 + FIRE_FRAMES
        frames.append(before)
    assert frames == sorted(frames)
    _, info = play_until_the_end(game)
    assert (info["lives"], info["whole_return"]) == (0, 0.0)
    assert game.reset()[1]["lives"] == 5
    assert game.ale.getEpisodeFrameNumber() <= NOOPS + FIRE_FRAMES


def test_a3_the_return_of_a_game_is_that_of_all_its_lives_raw():
    game = AtariGame("ms_pacman")
    game.reset(seed=0)
    total, lives, info = 0.0, 0, {"whole_return": np.nan}
    while np.isnan(info["whole_return"]):
        earned, info = play_until_the_end(game, button=2 + lives % 3)
        total, lives = total + earned, lives + 1
        if np.isnan(info["whole_return"]):
            game.reset()
    assert lives == 3
    assert info["whole_return"] == total >= 100  # ten points a pill: not clipped


def test_a3_a_reset_with_a_seed_is_a_new_game_even_after_a_lost_life():
    game = AtariGame("breakout")
    first, _ = game.reset(seed=5)
    play_until_the_end(game)
    again, info = game.reset(seed=5)
    np.testing.assert_array_equal(first, again)
    assert info["lives"] == 5


def test_a3_people_are_told_of_whole_games():
    world = make_world("BreakoutNoFrameskip-v4", 2)
    world.reset(0)
    log, lives = EpisodeLog(2), np.zeros(2, int)
    for _ in range(130):
        step = world.step(np.zeros(2, np.int64))
        ended = step.terminated | step.truncated
        log.count(step)
        log.finish(step, ended)
        lives += ended
    assert (lives >= 5).all()
    assert sorted(game.stream for game in log.take_fresh()) == [0, 1]


def test_a4_the_ball_is_served_at_the_start_of_a_game_and_of_each_life():
    game = AtariGame("breakout")
    game.reset(seed=0)
    for _ in range(6):  # a game of five lives, and the next one's first
        heights = [int(game.ale.getRAM()[BALL])]
        for _ in range(8):
            game.step(0)
            heights.append(int(game.ale.getRAM()[BALL]))
        assert any(heights), "nobody pressed FIRE"
        play_until_the_end(game)
        game.reset()


def test_a4_without_fire_there_would_be_no_ball():
    ale = emulator("breakout")
    for _ in range(60):
        ale.act(0)
    assert ale.getRAM()[BALL] == 0


@pytest.mark.parametrize("height", [210, 214, 220, 230, 250])  # all there are
def test_a5_a_picture_shrinks_to_the_mean_over_each_area(height: int):
    picture = np.random.default_rng(0).integers(0, 256, (height, 160), np.uint8)
    small = Shrink(height, 160)(picture)
    assert (small.shape, small.dtype) == ((84, 84), np.uint8)
    np.testing.assert_array_equal(small, mean_over_areas(picture))


def test_a5_pictures_stay_bytes():
    world = make_world("ALE/Pong-v5", 2)
    view = world.reset(0)
    step = world.step(np.zeros(2, np.int64))
    for obs in (view.obs["obs"], step.view.obs["obs"]):
        assert (obs.shape, obs.dtype) == ((2, STACK, 84, 84), np.uint8)
    assert world.observation["obs"].dtype == "uint8"


def test_a6_the_learner_gets_the_sign_of_points_which_the_world_gives_raw():
    low, high = CollectConfig(**preset("ale").collect).reward_range or (0, 0)
    points = np.arange(-500, 501)
    np.testing.assert_array_equal(np.clip(points, low, high), np.sign(points))


def test_a7_four_pictures_the_oldest_first_and_the_first_four_times():
    game = AtariGame("pong")
    before, _ = game.reset(seed=0)
    for picture in before:
        np.testing.assert_array_equal(picture, before[0])
    for _ in range(30):
        obs, *_ = game.step(2)
        np.testing.assert_array_equal(obs[:-1], before[1:])
        before = obs
    assert not np.array_equal(before[0], before[-1])


def test_a7_a_new_life_remembers_nothing_of_the_old_one():
    game = AtariGame("breakout")
    game.reset(seed=0)
    play_until_the_end(game, button=3)
    obs, _ = game.reset()
    assert all(np.array_equal(picture, obs[0]) for picture in obs)


def test_a_game_is_cut_short_at_the_limit_and_says_its_return():
    world = make_world("ALE/Pong-v5", max_episode_steps=7)
    world.reset(0)
    steps = [world.step(np.array([0])) for _ in range(14)]
    assert [bool(step.truncated[0]) for step in steps] == ([False] * 6 + [True]) * 2
    assert not any(step.terminated[0] for step in steps)
    assert [float(step.stats["whole_return"][0]) for step in steps if step.stats] == [0.0, 0.0]


def test_a_game_goes_on_from_its_state_to_the_last_bit():
    """In its second life, with actions that stick at random."""
    world, other = make_world("ALE/Breakout-v5", 2), make_world("ALE/Breakout-v5", 2)
    assert world.inexact is None
    rng = np.random.default_rng(0)
    world.reset(3)
    other.reset(4)
    for _ in range(45):
        world.step(rng.integers(0, 4, 2))
    other.set_state(world.state())
    ends = 0
    for _ in range(60):
        action = rng.integers(0, 4, 2)
        one, two = world.step(action), other.step(action)
        np.testing.assert_array_equal(one.view.obs["obs"], two.view.obs["obs"])
        np.testing.assert_array_equal(one.reward, two.reward)
        np.testing.assert_array_equal(one.terminated, two.terminated)
        assert one.stats.keys() == two.stats.keys()
        for key, value in one.stats.items():
            np.testing.assert_array_equal(value, two.stats[key])
        ends += int(one.terminated.sum())
    assert ends


def test_actions_stick_as_the_id_says():
    """Without chance two games with the same no-ops are one and the same; v5's actions stick at random."""
    for name, alike in (("PongNoFrameskip-v4", True), ("ALE/Pong-v5", False)):
        memory = []
        for seed in (0, 100):
            game = make_world(name).envs[0]  # type: ignore[attr-defined]
            game.reset(seed=seed)
            game.ale.reset_game()
            rng = np.random.default_rng(0)
            for _ in range(40):
                game.step(int(rng.integers(6)))
            memory.append(bytes(game.ale.getRAM()))
        assert (memory[0] == memory[1]) == alike


def test_a_world_of_games_is_ours_and_the_bare_game_is_gymnasiums():
    for name in ("ALE/Pong-v5", "PongNoFrameskip-v4"):
        assert is_atari(name)
        assert backend_of(make_world(name)) == "surefoot"
    bare = make_world("ALE/Pong-v5", backend="gymnasium")
    assert backend_of(bare) == "gymnasium"
    assert bare.observation["obs"].shape == (210, 160, 3)
    assert not is_atari("Pong-v4")
    assert not is_atari("CartPole-v1")


def test_a_world_of_games_draws_itself():
    world = make_world("ALE/Pong-v5")
    world.reset(0)
    picture = world.render()
    assert picture is not None
    assert (picture.shape, picture.dtype) == ((210, 160, 3), np.uint8)


def test_what_only_the_bare_game_takes_is_refused():
    with pytest.raises(ConfigError, match=r"built-in ALE/Pong-v5 takes no obs_type; backend='gymnasium'"):
        make_world("ALE/Pong-v5", env_kwargs={"obs_type": "ram"})
    assert make_world("ALE/Pong-v5", env_kwargs={"full_action_space": True}).action.n == 18  # type: ignore[union-attr]


def test_a_missing_emulator_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "ale_py", None)
    with pytest.raises(EnvError, match=r'pip install "surefoot\[atari\]"'):
        make_world("ALE/Pong-v5")
