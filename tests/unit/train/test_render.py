"""Pictures of episodes: as a GIF, in the terminal, and the error without pictures."""

import sys
from pathlib import Path

import numpy as np
import pytest

from surefoot.envs.make import make_world
from surefoot.errors import EnvError
from surefoot.nets.actor_critic import ActorCritic
from surefoot.train.render import MissingPillow, film, show_in_terminal, write_gif


def test_a_gif_has_at_most_400_pictures(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    frames = [np.full((8, 8, 3), n % 256, np.uint8) for n in range(500)]
    path = write_gif(frames, tmp_path / "new" / "film.gif", fps=30)
    with image.open(path) as picture:
        assert picture.n_frames <= 400


def test_the_terminal_shows_two_pixels_per_character(capsys: pytest.CaptureFixture[str]) -> None:
    frame = np.zeros((4, 4, 3), np.uint8)
    frame[:2] = 255
    show_in_terminal([frame], fps=1000, width=4)
    out = capsys.readouterr().out
    assert out.count("▀") == 2 * 4
    assert "38;2;255;255;255;48;2;255;255;255m" in out  # the upper row of characters: both halves white


def test_a_world_without_pictures_is_named() -> None:
    world = make_world("surefoot/ContextBandit-v0")
    policy = ActorCritic(world.observation, world.action)
    with pytest.raises(EnvError, match="renders no picture"):
        film(policy, world, 1, seed=0, deterministic=True, longest=10)


def test_without_pillow_a_gif_is_refused_by_a_type_that_play_can_catch(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingPillow, match="surefoot\\[video\\]"):
        write_gif([np.zeros((2, 2, 3), np.uint8)], tmp_path / "x.gif", fps=30)
