"""Train every PPO entry of RL Zoo's file for one short rollout: prints {entry: error or ""} as JSON lines.

python benchmarks/workloads/zoo_entries.py hyperparams/ppo.yml
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import yaml

from surefoot.compat.sb3.zoo import current_id, make_model, read_zoo_run

# Registers their envs with Gymnasium, as RL Zoo does.
PACKAGES = ("pybullet_envs_gymnasium", "minigrid", "ale_py")


def main() -> None:
    """Read and train all entries; those that are no env are read for a game."""
    path = Path(sys.argv[1])
    for package in PACKAGES:
        with suppress(ImportError):
            import_module(package)
    names: list[str] = list(yaml.safe_load(path.read_text()))
    for name in names:
        env = {"atari": "PongNoFrameskip-v4", "default": "CartPole-v1"}.get(name, name)
        try:
            run = read_zoo_run(path, name if name == "default" else env)
            small = {**run.settings, "n_steps": 32, "batch_size": 32, "n_epochs": 1}
            model = make_model(replace(run, env=current_id(env), envs=1, settings=small), verbose=0).learn(32)
            error = "" if model.num_timesteps == 32 else f"{model.num_timesteps} steps"
            if model.env is not None:
                model.env.close()
        except Exception as why:
            error = f"{type(why).__name__}: {why}".splitlines()[0][:200]
        print(json.dumps({"entry": name, "error": error}), flush=True)


if __name__ == "__main__":
    main()
