"""Memory, masks and pictures by Surefoot: the peers' networks, envs and numbers. Prints JSON.

python surefoot_shapes.py memory|masks|pictures SECONDS
"""

from __future__ import annotations

import sys

from clock import Laps, tell
from odd_shapes import ODD
from odd_worlds import Catch, InOrder, NoVelocity


def main(workload: str, seconds: float) -> None:
    import torch

    torch.set_num_threads(1)
    from surefoot.envs.make import make_world
    from surefoot.train.spec import make_spec
    from surefoot.train.training import Training

    shape, laps = ODD[workload], Laps(seconds)
    build, net = {
        "memory": (NoVelocity, {"memory": "lstm", "memory_size": shape.memory}),
        "masks": (InOrder, {}),
        "pictures": (Catch, {"shared": True, "hidden": ()}),
    }[workload]
    world = make_world(build, shape.envs)
    settings = {
        "envs": shape.envs,
        "rollout_steps": shape.steps,
        "minibatch_size": shape.minibatch,
        "epochs": shape.epochs,
        **net,
    }
    total = (shape.warm_up + shape.updates) * shape.rollout
    training = Training(
        make_spec(world.name, world.action, preset_name="sb3", settings=settings, total_steps=total), world=world
    )
    for _ in range(shape.warm_up):
        training.update()
    laps.begin()
    for _ in range(shape.updates):
        training.update()
    laps.end(shape.updates * shape.rollout)
    tell(**laps.numbers(), path=training.learner.path)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
