"""CPU-seconds of one of our updates, for any shapes. A cell comes in as a JSON line, its seconds go out as one.

python surefoot_update.py PATH
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import Any

from clock import seconds_each


def updater(cell: dict[str, Any], path: str) -> Any:
    """A function that makes one update of the cell's shapes, and returns its report."""
    import numpy as np
    import torch

    from surefoot.data.rollout import Rollout
    from surefoot.data.spaces import Box, Discrete
    from surefoot.learn.config import PPOConfig
    from surefoot.learn.learner import Learner
    from surefoot.nets.actor_critic import ActorCritic
    from surefoot.nets.config import NetConfig
    from surefoot.nets.policy import PolicyInput

    shape, rng = (cell["steps"], cell["envs"]), np.random.default_rng(0)
    policy = ActorCritic({"obs": Box((cell["obs"],))}, Discrete(2), NetConfig(hidden=(cell["width"],) * cell["depth"]))
    config = PPOConfig(
        envs=cell["envs"],
        rollout_steps=cell["steps"],
        epochs=cell["epochs"],
        minibatch_size=cell["minibatch"],
        lr=1e-6,  # so that the same rollout can be learned from many times
        path=path,
    )
    obs = rng.standard_normal((*shape, cell["obs"]), dtype=np.float32)
    with torch.no_grad():
        flat = torch.from_numpy(obs.reshape(-1, cell["obs"]))
        out = policy.act(PolicyInput(obs={"obs": flat}), generator=torch.Generator().manual_seed(0))
    value = out.value.numpy().reshape(shape)
    terminated = rng.random(shape) < 0.02
    rollout = Rollout(
        obs={"obs": obs},
        action=out.action.numpy().reshape(shape),
        log_prob=out.log_prob.numpy().reshape(shape),
        value=value,
        next_value=np.concatenate([value[1:], value[:1]]),
        reward=rng.standard_normal(shape, dtype=np.float32),
        terminated=terminated,
        truncated=np.zeros(shape, bool),
        start=np.zeros(shape, bool),
        valid=np.ones(shape, bool),
        policy_version=np.zeros(shape, np.int64),
    )
    learner = Learner(policy, config)

    def update() -> Any:
        # As if just collected: an old rollout would be weighed first, which costs time.
        return learner.update(replace(rollout, policy_version=np.full(shape, learner.policy_version)))

    return update


def main(path: str) -> None:
    import torch

    torch.set_num_threads(1)
    from surefoot.errors import SurefootError
    from surefoot.train.diagnose.speed import sgemm_gflops

    for line in sys.stdin:
        cell = json.loads(line)
        if cell == "sgemm":
            print(json.dumps({"gflops": sgemm_gflops(seconds=1.0)}), flush=True)
            continue
        try:
            update = updater(cell, path)
            report = update()
            told = {"seconds": seconds_each(update), "path": report.path, "path_reason": report.path_reason}
        except SurefootError as why:
            told = {"seconds": None, "path": "none", "path_reason": str(why)}
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
