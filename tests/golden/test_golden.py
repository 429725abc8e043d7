"""The digits of one short seeded run, so that nothing changes learning by accident.

`python tests/golden/test_golden.py --rewrite` writes them anew; the commit that does so says why they moved.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from surefoot.learn.config import PPOConfig
from surefoot.nets.config import NetConfig
from surefoot.train.config import CollectConfig
from surefoot.train.spec import RunSpec
from surefoot.train.training import Training

DIGITS = Path(__file__).with_name("digits.json")
RUNS = {
    "cartpole": ("CartPole-v1", {}, {}),
    "pendulum": ("Pendulum-v1", {"normalize_obs": True}, {"normalize_reward": True}),
    "masked": ("surefoot/Masked-v0", {"shared": True}, {}),
}
NUMBERS = (
    "policy_loss", "value_loss", "entropy", "loss", "approx_kl", "clip_fraction", "grad_norm", "explained_variance",
    "advantage_mean", "advantage_std", "reward_mean", "value_mean", "target_mean", "lr", "minibatches",
)  # fmt: skip


def digits(name: str) -> dict[str, Any]:
    """Five updates: what each reported, and where every weight ended up, as mean and mean square."""
    env, net, collect = RUNS[name]
    ppo = PPOConfig(
        rollout_steps=32,
        envs=4,
        minibatch_size=40,
        epochs=3,
        lr="lin_2e-3",
        ent_coef=0.01,
        value_clip=0.5,
        seed=7,
        device="cpu",
        path="torch",  # the definition; the kernel is held to it by tests/property/test_kernel.py
    )
    spec = RunSpec(
        env=env,
        preset="sb3",
        total_steps=5 * ppo.batch_size,
        ppo=ppo,
        net=NetConfig(hidden=(16, 16), **net),
        collect=CollectConfig(**collect),
        eval_every=0,
        checkpoint_every=10**9,
    )
    training = Training(spec)
    updates = [{key: getattr(report, key) for key in NUMBERS} for report in training]
    weights = {
        key: [float(x.double().mean()), float(x.double().square().mean())]
        for key, x in training.policy.state_dict().items()
    }
    return {"updates": updates, "weights": weights, "episodes": training.collector.episodes.finished}


@pytest.mark.parametrize("name", RUNS)
def test_a_seeded_run_has_the_digits_it_had(name):
    expected = json.loads(DIGITS.read_text("utf-8"))[name]
    got = digits(name)
    assert got["episodes"] == expected["episodes"]
    for update, (ours, theirs) in enumerate(zip(got["updates"], expected["updates"], strict=True)):
        assert ours == pytest.approx(theirs, rel=1e-4, abs=1e-6), f"update {update + 1}"
    assert got["weights"].keys() == expected["weights"].keys()
    for key, theirs in expected["weights"].items():
        assert got["weights"][key] == pytest.approx(theirs, rel=1e-5, abs=1e-6), key


if __name__ == "__main__":
    if sys.argv[1:] != ["--rewrite"]:
        sys.exit("usage: python tests/golden/test_golden.py --rewrite")
    torch.set_num_threads(1)
    DIGITS.write_text(json.dumps({name: digits(name) for name in RUNS}, indent=1) + "\n", "utf-8")
    print(f"wrote {DIGITS.name}; say in the commit why the digits moved")
