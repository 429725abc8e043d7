"""One seed of one task, as a script for Stable-Baselines3; `sb3_curves.py` runs it as it is and with `surefoot.sb3` instead.

python benchmarks/workloads/sb3_curve.py TASK SEED RESULT.json
"""

from __future__ import annotations

import csv
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import configure
from stable_baselines3.common.utils import LinearSchedule
from stable_baselines3.common.vec_env import VecNormalize
from torch import nn

WIDE = {
    "log_std_init": -2,
    "ortho_init": False,
    "activation_fn": nn.ReLU,
    "net_arch": {"pi": [256, 256], "vf": [256, 256]},
}
# Settings of RL Zoo's hyperparams/ppo.yml, except for the steps and for the rollout of BipedalWalker, which would be longer
# than the run. "normalize" is VecNormalize as the zoo applies it.
TASKS: dict[str, tuple[int, dict[str, Any]]] = {
    "CartPole-v1": (
        100_000,
        {"n_envs": 8, "n_steps": 32, "batch_size": 256, "gae_lambda": 0.8, "gamma": 0.98, "n_epochs": 20}
        | {"learning_rate": LinearSchedule(1e-3, 0.0, 1.0), "clip_range": LinearSchedule(0.2, 0.0, 1.0)},
    ),
    "Acrobot-v1": (
        100_000,
        {"normalize": True, "n_envs": 16, "n_steps": 256, "gae_lambda": 0.94, "gamma": 0.99, "n_epochs": 4},
    ),
    "LunarLander-v3": (
        100_000,
        {"n_envs": 16, "n_steps": 1024, "batch_size": 64, "gae_lambda": 0.98, "gamma": 0.999, "n_epochs": 4}
        | {"ent_coef": 0.01},
    ),
    "Pendulum-v1": (
        50_000,
        {"n_envs": 4, "n_steps": 1024, "gae_lambda": 0.95, "gamma": 0.9, "n_epochs": 10, "learning_rate": 1e-3}
        | {"use_sde": True, "sde_sample_freq": 4},
    ),
    "BipedalWalker-v3": (
        60_000,
        {"normalize": True, "n_envs": 8, "n_steps": 512, "batch_size": 64, "gae_lambda": 0.95, "gamma": 0.999}
        | {"n_epochs": 10, "learning_rate": 3e-4, "clip_range": 0.18},
    ),
    "Hopper-v5": (
        60_000,
        {"normalize": True, "n_envs": 1, "n_steps": 512, "batch_size": 32, "gamma": 0.999, "learning_rate": 9.80828e-05}
        | {"ent_coef": 0.00229519, "n_epochs": 5, "gae_lambda": 0.99, "max_grad_norm": 0.7, "vf_coef": 0.835671}
        | {"policy_kwargs": WIDE},
    ),
}


def main() -> None:
    """Train, and write CPU seconds of `learn` and the mean return of the last 100 episodes after each rollout."""
    task, seed, target = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    steps, settings = TASKS[task]
    settings = dict(settings)
    normalize = settings.pop("normalize", False)
    env: Any = make_vec_env(task, n_envs=settings.pop("n_envs"), seed=seed)
    if normalize:
        env = VecNormalize(env, gamma=settings["gamma"])
    model = PPO("MlpPolicy", env, seed=seed, device="cpu", **settings)
    with tempfile.TemporaryDirectory() as folder:
        model.set_logger(configure(folder, ["csv"]))
        begin = time.process_time()
        model.learn(steps)
        seconds = time.process_time() - begin
        model.logger.close()
        rows = list(csv.DictReader((Path(folder) / "progress.csv").open()))
    curve = [
        (int(r["time/total_timesteps"]), float(r["rollout/ep_rew_mean"])) for r in rows if r["rollout/ep_rew_mean"]
    ]
    target.write_text(json.dumps({"cpu_seconds": round(seconds, 3), "curve": curve}))


if __name__ == "__main__":
    main()
