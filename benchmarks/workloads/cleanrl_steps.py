"""W1 by CleanRL's own ppo.py, from a checkout of it, in the environment of Stable-Baselines3. Prints JSON.

python cleanrl_steps.py DIR SECONDS
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

from clock import Laps, cpu, tell
from shapes import SHAPES


def main(checkout: Path, seconds: float) -> None:
    import gymnasium as gym
    import torch

    torch.set_num_threads(1)
    shape, laps = SHAPES["W1"], Laps(seconds)
    first = 0.0
    steps = 0

    class Counted(gym.vector.SyncVectorEnv):
        """CleanRL's vector env, which notes when the first step was taken and when warm-up was over."""

        def step(self, actions: Any) -> Any:
            nonlocal first, steps
            first = first or cpu()
            if steps == shape.warm_up * shape.steps:
                laps.begin()
            steps += 1
            return super().step(actions)

    gym.vector.SyncVectorEnv = Counted  # pyright: ignore[reportAttributeAccessIssue]: the script looks it up there
    # W1's settings are CleanRL's defaults except for the number of environments; value clipping is on in it by default.
    settings = {
        "--env-id": shape.env,
        "--num-envs": shape.envs,
        "--num-steps": shape.steps,
        "--num-minibatches": shape.rollout // shape.minibatch,
        "--update-epochs": shape.epochs,
        "--total-timesteps": (shape.warm_up + shape.updates) * shape.rollout,
    }
    sys.argv = ["ppo.py", *(str(word) for pair in settings.items() for word in pair), "--no-cuda"]
    printed = sys.stdout
    while True:
        steps, sys.stdout = 0, sys.stderr
        runpy.run_path(str(checkout / "cleanrl" / "ppo.py"), run_name="__main__")
        laps.end(shape.updates * shape.rollout)
        sys.stdout = printed
        if laps.enough:
            break
    tell(**laps.numbers(), first_step_cpu_seconds=first)


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))
