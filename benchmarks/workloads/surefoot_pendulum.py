"""W5 on our side: RLtools' Pendulum benchmark, the preset `pendulum-fast` with its sizes, steps and evaluation. Prints JSON.

python surefoot_pendulum.py SEED

`cpu_seconds` counts everything after the imports: building the run, learning, 1,000 evaluation episodes.
"""

from __future__ import annotations

import sys

from clock import cpu, tell

STEPS = 75 * 4 * 1024
"""RLtools' limit is 74 steps of its loop, and it takes one more."""
EPISODES = 1000


def main(seed: int) -> None:
    import torch

    torch.set_num_threads(1)
    from surefoot.envs.make import make_world
    from surefoot.train.evaluate import EVAL_SEED_OFFSET, play
    from surefoot.train.spec import make_spec
    from surefoot.train.training import Training

    env, imported = "Pendulum-v1", cpu()
    spec = make_spec(
        env, make_world(env).action, preset_name="pendulum-fast", settings={"seed": seed}, total_steps=STEPS
    )
    training = Training(spec)
    path = [report.path for report in training][-1]
    learned = cpu()
    played = play(training.policy, make_world(env, EPISODES), EPISODES, seed=seed + EVAL_SEED_OFFSET)
    ended = cpu()
    tell(
        **{"return": played.mean},
        cpu_seconds=ended - imported,
        evaluation_cpu_seconds=ended - learned,
        import_cpu_seconds=imported,
        steps=training.env_steps,
        path=path,
    )


if __name__ == "__main__":
    main(int(sys.argv[1]))
