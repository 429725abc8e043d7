"""W4 on our side: CartPole-v1 with its shipped preset until the last 100 episodes average 475. Prints JSON.

python surefoot_solve.py SEED PATH
"""

from __future__ import annotations

import sys

from clock import cpu, tell


def main(seed: int, path: str) -> None:
    import torch

    torch.set_num_threads(1)
    from surefoot.envs.make import make_world
    from surefoot.train.spec import make_spec
    from surefoot.train.training import Training

    env = "CartPole-v1"
    spec = make_spec(env, make_world(env).action, settings={"seed": seed, "path": path})
    training, begin, solved = Training(spec), cpu(), False
    while True:
        report, episodes = training.update(), training.collector.episodes
        mean = episodes.recent()[0]
        solved = episodes.finished >= 100 and mean is not None and mean >= 475
        if solved or training.finished:
            break
    tell(
        solved=solved,
        steps=training.env_steps,
        train_cpu_seconds=cpu() - begin,
        final_return=training.collector.episodes.recent()[0],
        path=report.path,
        path_reason=report.path_reason,
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
