"""What chance does not find, curiosity and sub-goals do: small mazes that are learned in a few seconds."""

from __future__ import annotations

from typing import Any

import pytest

from surefoot.envs.builtin.maze import LongMaze, Maze
from surefoot.envs.builtin.streams import Streams
from surefoot.envs.goals import landmarks
from surefoot.learn.config import PPOConfig
from surefoot.nets.config import NetConfig
from surefoot.train.algorithms.hierarchy import Hierarchy, HierarchySpec
from surefoot.train.config import CollectConfig
from surefoot.train.spec import RunSpec
from surefoot.train.training import Training

SNAKE = """
#########
#S......#
#######.#
#.......#
#.#######
#......G#
#########
"""
COMMON: dict[str, Any] = {
    "envs": 32,
    "rollout_steps": 32,
    "minibatch_size": 256,
    "epochs": 4,
    "lr": 1e-3,
    "device": "cpu",
}


def won(curiosity: str, total_steps: int) -> float:
    spec = RunSpec(
        env="snake",
        preset="sb3",
        total_steps=total_steps,
        ppo=PPOConfig(**COMMON, ent_coef=0.01, seed=1),
        net=NetConfig(),
        collect=CollectConfig(curiosity=curiosity, ext_coef=5.0 if curiosity != "none" else 1.0),
        eval_every=0,
        checkpoint_every=10**9,
    )
    training = Training(spec, world=Streams("snake", Maze(SNAKE, limit=50), 32))
    list(training)
    return training.collector.episodes.recent()[0] or 0.0


@pytest.mark.parametrize(("curiosity", "expected"), [("none", 0.0), ("rnd", 1.0)])
def test_rnd_finds_the_end_of_a_snake_that_plain_ppo_does_not(curiosity: str, expected: float):
    assert won(curiosity, 120_000) == pytest.approx(expected, abs=0.1)


def test_a_manager_and_a_worker_get_through_four_rooms():
    maze = LongMaze(2, 2, 4, limit=200)
    rooms = landmarks(maze.landmarks, lambda obs: maze.where(obs["obs"]), near=0.5, among=maze.nearby)
    spec = HierarchySpec(
        total_steps=120_000,
        every=20,
        worker=PPOConfig(**{**COMMON, "rollout_steps": 64, "minibatch_size": 512}, ent_coef=0.05, seed=1),
        manager=PPOConfig(
            lr=1e-3, ent_coef=0.01, normalize_advantage="off", minibatch_size=128, epochs=4, device="cpu"
        ),
    )
    both = Hierarchy(lambda streams: Streams("rooms", maze, streams), rooms, spec)
    list(both)
    assert both.evaluate(20).mean >= 0.9
