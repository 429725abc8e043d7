"""W1 to W3 on our side, through `Training` as everyone else uses it. Prints JSON.

python surefoot_steps.py WORKLOAD WHOSE SECONDS PATH      WHOSE is own, gymnasium or sync (an unmodified SyncVectorEnv)
"""

from __future__ import annotations

import sys

from clock import Laps, cpu, tell
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
            "rollout_steps": steps,
            "epochs": shape.epochs,
            "minibatch_size": shape.minibatch,
            "path": path,
            **shape.settings,
        }
        spec = make_spec(shape.env, world.action, preset_name="sb3", settings=settings, total_steps=10**9)
        return Training(spec, world=world)

    first = training(1)
    first.collector.collect(0)
    first_step = cpu()
    first.close()

    laps = Laps(seconds)
    while True:
        run = training(shape.steps)
        for _ in range(shape.warm_up):
            run.update()
        before = run.env_steps
        laps.begin()
        reports = [run.update() for _ in range(shape.updates)]
        laps.end(run.env_steps - before)
        run.close()
        if laps.enough:
            break
    tell(
        **laps.numbers(),
        first_step_cpu_seconds=first_step,
        final_return=run.collector.episodes.recent()[0],
        path=reports[-1].path,
        path_reason=reports[-1].path_reason,
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4])
