"""Run by torchrun: trains together, and beside it one learner on the joined batches; says how far they are apart."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import torch

from surefoot.learn.config import PPOConfig
from surefoot.learn.learner import Learner
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.scale.backend import Piece, join
from surefoot.scale.process_group import join_group
from surefoot.scale.shared_training import SharedTraining
from surefoot.train.config import CollectConfig
from surefoot.train.spec import RunSpec

UPDATES = 6
KINDS = {
    "plain": ({"minibatch_size": 40}, {}),
    "memory": ({"minibatch_size": 16}, {"memory": "gru", "memory_size": 8}),  # one stream each: the other has none
    "sequence": ({"minibatch_size": 30, "sequence": 6, "burn_in": 3}, {"memory": "lstm", "memory_size": 8}),
}


def main(out: Path) -> None:
    torch.set_num_threads(1)
    group = join_group()
    said = {kind: compare(group, kind) for kind in KINDS}
    if group.rank == 0:
        out.write_text(json.dumps(said))
    group.close()


def compare(group, kind: str) -> dict:
    """What the processes of the group came to by the last update, and what one came to that learned from all of it."""
    ppo = {"rollout_steps": 16, "envs": 6, "epochs": 4, "lr": 1e-2, "target_kl": 0.004, "device": "cpu"} | KINDS[kind][
        0
    ]
    spec = RunSpec(
        env="Pendulum-v1",
        preset="sb3",
        ppo=PPOConfig(**ppo, normalize_value=True),
        net=NetConfig(hidden=(8,), normalize_obs=True, **KINDS[kind][1]),
        collect=CollectConfig(normalize_reward=True),
        eval_every=0,
        checkpoint_every=10_000,
        total_steps=10_000,
    )
    training = SharedTraining(spec, group)
    policy = ActorCritic(training.world.observation, training.world.action, spec.net, seed=spec.seed)
    lone = Learner(policy, spec.ppo.replace(path="torch"), total_updates=spec.total_updates)
    stopped: list[tuple[bool, bool]] = []
    for _ in range(UPDATES):
        kept, progress = [], training.env_steps / spec.total_steps
        if group.rank > 0:
            group.broadcast()  # that an update comes
        report = training.update(kept)
        whole = join(
            [Piece(worker=k, serial="", version=0, rollout=r) for k, r in enumerate(everybody(group, kept[0]))]
        )
        alone = lone.update(whole, progress=progress)
        stopped.append((report.stopped_early, alone.stopped_early))
    pairs = zip(training.policy.state_dict().values(), policy.state_dict().values(), strict=True)
    if group.rank == 0:
        training.close()
    else:
        training.follow()
    return {
        "difference": max(float((a - b).abs().max()) for a, b in pairs),
        "samples": [report.samples, alone.samples],
        "approx_kl": [report.approx_kl, alone.approx_kl],
        "first_ratio_error": report.first_ratio_error,
        "policy_loss": [report.policy_loss, alone.policy_loss],
        "minibatches": [report.minibatches, alone.minibatches],
        "stopped_early": list(zip(*stopped, strict=True)),
    }


def everybody(group, rollout):
    """The rollouts of all processes, gathered array by array."""
    arrays = rollout.arrays()
    found = {name: group.gather(x) for name, x in arrays.items()}
    for rank in range(group.size):
        parts = {name: np.ascontiguousarray(x[rank]).astype(arrays[name].dtype) for name, x in found.items()}
        yield type(rollout).from_arrays(parts)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
