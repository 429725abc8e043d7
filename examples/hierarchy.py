"""Two policies: a manager that names the next room, and a worker that learns to get there.

python examples/hierarchy.py
"""

import os

import numpy as np
import torch

from surefoot import PPOConfig, make_world
from surefoot.envs.builtin.maze import LongMaze
from surefoot.envs.goals import landmarks
from surefoot.train.algorithms.hierarchy import Hierarchy, HierarchySpec

STEPS = int(os.environ.get("SUREFOOT_EXAMPLE_STEPS", "200_000"))


def main() -> None:
    torch.set_num_threads(1)
    maze = LongMaze()
    rooms = landmarks(maze.landmarks, lambda obs: maze.where(obs["obs"]), near=0.5, among=maze.nearby)
    spec = HierarchySpec(
        total_steps=STEPS,
        every=20,
        worker=PPOConfig(envs=64, rollout_steps=64, minibatch_size=1024, epochs=4, lr=1e-3, ent_coef=0.05, seed=1),
        manager=PPOConfig(minibatch_size=256, epochs=4, lr=1e-3, ent_coef=0.01, normalize_advantage="off"),
        progress=1.0,
    )
    both = Hierarchy(lambda streams: make_world("surefoot/LongMaze-v0", streams), rooms, spec)
    for update, report in enumerate(both, 1):
        if update % 8 == 0:
            won = both.episodes.recent()[0] or 0.0
            print(f"{both.env_steps:7,} steps  sub-goals reached {report.reached:4.0%}  episodes won {won:4.0%}")
    played = both.evaluate(20)
    print(
        f"{played.mean:.0%} won in {np.mean(played.lengths):.0f} steps on average; {maze.shortest} is the shortest way"
    )


if __name__ == "__main__":
    main()
