"""W1 to W3 on our side, through `Training` as everyone else uses it. Prints JSON.

python surefoot_steps.py WORKLOAD WHOSE SECONDS PATH      WHOSE is own, gymnasium or sync (an unmodified SyncVectorEnv)
"""

from __future__ import annotations

import sys

from clock import Stretch, cpu, tell
from shapes import SHAPES


def main(workload: str, whose: str, seconds: float, path: str) -> None:
    import torch

    torch.set_num_threads(1)
    from surefoot.envs.make import make_world
    from surefoot.train.spec import make_spec
    from surefoot.train.training import Training

    shape = SHAPES[workload]

    def training(steps: int) -> Training:
        if whose == "sync":
            import gymnasium

            world = make_world(gymnasium.vector.SyncVectorEnv([lambda: gymnasium.make(shape.env)] * shape.envs))
        else:
            world = make_world(shape.env, shape.envs, backend="auto" if whose == "own" else "gymnasium")
        settings = {
            "envs": shape.envs,
            "steps": steps,
            "epochs": shape.epochs,
            "minibatch_size": shape.minibatch,
            "path": path,
        }
        spec = make_spec(shape.env, world.action, preset_name="sb3", settings=settings, total_steps=10**9)
        return Training(spec, world=world)

    first = training(1)
    first.collector.collect(0)
    first_step = cpu()
    first.close()

    run = training(shape.steps)
    for _ in range(shape.warm_up):
        report = run.update()
    begin, stretch = run.env_steps, Stretch(seconds)
    while True:
        report = run.update()
        if stretch.enough:
            break
    numbers = stretch.numbers(run.env_steps - begin)
    tell(
        **numbers,
        first_step_cpu_seconds=first_step,
        final_return=run.collector.episodes.recent()[0],
        path=report.path,
        path_reason=report.path_reason,
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4])
