"""CPU time of entries of RL Zoo's ppo.yml, for a few rollouts each; `zoo.py` runs it with both Pythons.

python benchmarks/workloads/zoo_entry.py SIDE     SIDE is sb3, surefoot or env
A line of standard input is one entry as JSON: the id of the env, its wrappers, and the settings as both sides take them. The
answer is a line of JSON. One process measures all entries, so that what is loaded once is not counted.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium as gym

ENV_STEPS = 2_000


def wrapping(names: list[str]) -> Callable[[Any], Any]:
    """Return the function that puts an env into the wrappers of these dotted names."""
    kinds = [getattr(importlib.import_module(module), kind) for module, _, kind in (n.rpartition(".") for n in names)]

    def wrap(env: Any) -> Any:
        for kind in kinds:
            env = kind(env)
        return env

    return wrap


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return (CPU seconds, the result)."""
    begin = time.process_time()
    result = work()
    return time.process_time() - begin, result


def by_sb3(entry: dict[str, Any]) -> dict[str, Any]:
    """Train with Stable-Baselines3 as RL Zoo does."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.utils import LinearSchedule
    from stable_baselines3.common.vec_env import VecNormalize
    from torch import nn

    PPO("MlpPolicy", "CartPole-v1", n_steps=64, device="cpu").learn(64)  # what is loaded once
    settings = dict(entry["sb3"])
    for name, value in settings.items():
        if isinstance(value, str) and value.startswith("lin_"):
            settings[name] = LinearSchedule(float(value[4:]), 0.0, 1.0)
    kwargs = settings.get("policy_kwargs", {})
    if "activation_fn" in kwargs:
        kwargs["activation_fn"] = getattr(nn, kwargs["activation_fn"])
    env: Any = make_vec_env(entry["env"], n_envs=entry["envs"], seed=0, wrapper_class=wrapping(entry["wrappers"]))
    if entry["normalize"] is not None:
        env = VecNormalize(env, **{"gamma": settings.get("gamma", 0.99), **entry["normalize"]})
    model = PPO("MlpPolicy", env, seed=0, device="cpu", **settings)
    return {"cpu_seconds": timed(lambda: model.learn(entry["steps"]))[0], "steps": model.num_timesteps}


def by_surefoot(entry: dict[str, Any]) -> dict[str, Any]:
    """Train as `surefoot import zoo` and `surefoot train --config` do."""
    from surefoot.envs.make import make_world
    from surefoot.train.device import pin_threads
    from surefoot.train.spec import make_spec
    from surefoot.train.training import Training

    pin_threads()

    def train(env: str, wrappers: list[str], settings: dict[str, Any], steps: int) -> Callable[[], Any]:
        def make(streams: int, workers: Any = 0) -> Any:
            return make_world(env, streams, wrappers=[wrapping(wrappers)] if wrappers else ())

        spec = make_spec(env, make(1).action, preset_name="sb3", settings=settings, total_steps=steps, eval_every=0)
        training = Training(spec, make=make)
        return lambda: ([(report.path, report.path_reason) for report in training], training.env_steps)

    train("CartPole-v1", [], {"n_steps": 64}, 64)()
    seconds, (paths, steps) = timed(train(entry["env"], entry["wrappers"], entry["surefoot"], entry["steps"]))
    share = sum(path == "native" for path, _ in paths) / len(paths)
    return {"cpu_seconds": seconds, "steps": steps, "kernel": share, "reason": paths[-1][1]}


def env_alone(entry: dict[str, Any]) -> dict[str, Any]:
    """Step Surefoot's world of these envs with random actions."""
    from surefoot.envs.make import backend_of, make_world

    wrappers = [wrapping(entry["wrappers"])] if entry["wrappers"] else ()
    world = make_world(entry["env"], entry["envs"], wrappers=wrappers)
    world.reset(0)
    space = gym.vector.utils.batch_space(gym.make(entry["env"]).action_space, entry["envs"])
    actions = [space.sample() for _ in range(max(1, ENV_STEPS // entry["envs"]))]
    seconds, _ = timed(lambda: [world.step(action) for action in actions])
    world.close()
    return {"cpu_seconds": seconds, "steps": len(actions) * entry["envs"], "backend": backend_of(world)}


def main() -> None:
    """Answer each line."""
    warnings.filterwarnings("ignore")
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # pybullet prints from C
    for package in ("minigrid", "pybullet_envs_gymnasium"):  # they register their ids
        with contextlib.suppress(ImportError):
            importlib.import_module(package)
    measure = {"sb3": by_sb3, "surefoot": by_surefoot, "env": env_alone}[sys.argv[1]]
    for line in sys.stdin:
        try:
            result = measure(json.loads(line))
        except Exception as error:  # of anybody's env: the next entry is to be measured all the same
            result = {"error": f"{type(error).__name__}: {error}"[:200]}
        print(json.dumps(result), file=answers, flush=True)


if __name__ == "__main__":
    main()
