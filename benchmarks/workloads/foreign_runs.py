"""Runs of Stable-Baselines3 and CleanRL with one fault each, for doctor_foreign.py. Runs in the peer's own environment.

    python foreign_runs.py sb3|cleanrl FOLDER [SCRIPTS]     reads one case per line: {"fault": …, "env": …, "seed": …}

Each run writes its log as its library does: SB3 progress.csv (CartPole) or TensorBoard events, and the saved model;
CleanRL TensorBoard events, by its own scripts as they are. CleanRL needs Gymnasium 0.29: it reads `final_info` of vector
envs, which later versions do not have. One line of JSON per finished run.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import runpy
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium as gym

STEPS = {"CartPole-v1": 10_000, "Acrobot-v1": 25_000, "InvertedPendulum-v4": 10_000, "InvertedPendulum-v5": 10_000}
CONTINUOUS = ("InvertedPendulum-v4", "InvertedPendulum-v5")


@dataclass(frozen=True)
class ForeignFault:
    """A fault of a setting, by its name in SB3, or of the environment, by its name in workloads/faulty_envs.py."""

    name: str
    right: tuple[str, ...]
    settings: dict[str, Any] = field(default_factory=dict)
    wrap: str | None = None
    unseen: bool = False


FAULTS = [
    ForeignFault("lr-x100", ("S01", "R03X", "R03"), {"learning_rate": 0.1}),
    ForeignFault("lr-low", ("S01", "R04"), {"learning_rate": 1e-6}, unseen=True),
    ForeignFault("ent-coef-1", ("S03", "R07"), {"ent_coef": 1.0}),
    ForeignFault("gamma-05", ("S02",), {"gamma": 0.5}),
    ForeignFault("lam-0", ("S05",), {"gae_lambda": 0.0}, unseen=True),
    ForeignFault("clip-tiny", ("S04",), {"clip_range": 1e-3}),
    ForeignFault("clip-huge", ("S04",), {"clip_range": 10.0}, unseen=True),
    ForeignFault("epochs-50", ("S08",), {"n_epochs": 50}),
    ForeignFault("one-gradient-step", ("S09",), {"n_epochs": 1, "batch_size": 256}, unseen=True),
    ForeignFault("vf-coef-0", ("S06",), {"vf_coef": 0.0}, unseen=True),
    ForeignFault("grad-norm-tiny", ("S07",), {"max_grad_norm": 1e-4}, unseen=True),
    ForeignFault("reward-x1e5", ("R24",), wrap="reward_large"),
    ForeignFault("reward-zero", ("R10",), wrap="reward_zero", unseen=True),
    ForeignFault("reward-sign", ("E14", "R26", "R11"), wrap="reward_sign", unseen=True),
    ForeignFault("obs-constant", ("E01", "R22S"), wrap="obs_constant"),
    ForeignFault("obs-shuffled", ("E07",), wrap="obs_shuffled", unseen=True),
    ForeignFault("action-random", ("E08",), wrap="action_random"),
]
CLEANRL_NAMES = {"n_epochs": "update_epochs", "clip_range": "clip_coef"}


def wrapped(name: str | None) -> Callable[[gym.Env], gym.Env]:
    from workloads import faulty_envs as faulty

    wraps: dict[str | None, Callable[[gym.Env], gym.Env]] = {
        None: lambda env: env,
        "reward_large": lambda env: faulty.ChangedReward(env, lambda r, rng: 1e5 * r),
        "reward_zero": lambda env: faulty.ChangedReward(env, lambda r, rng: 0.0),
        "reward_sign": lambda env: faulty.ChangedReward(env, lambda r, rng: -r),
        "obs_constant": lambda env: faulty.ChangedObservation(env, faulty.zero),
        "obs_shuffled": lambda env: faulty.ChangedObservation(env, faulty.shuffled),
        "action_random": lambda env: faulty.ChangedAction(env, faulty.random_action),
    }
    return wraps[name]


class Lengths(gym.Wrapper):
    """Collects the true return of each episode, below the fault."""

    returns: list[float] = []  # noqa: RUF012  all environments of a process share it

    def reset(self, **how: Any) -> Any:
        self._sum = 0.0
        return self.env.reset(**how)

    def step(self, action: Any) -> Any:
        result = self.env.step(action)
        self._sum += float(result[1])
        if result[2] or result[3]:
            self.returns.append(self._sum)
        return result


def sb3(fault: ForeignFault | None, env: str, seed: int, folder: Path) -> None:
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.logger import configure

    settings = {
        "n_steps": 64,
        "batch_size": 64,
        "n_epochs": 4,
        "learning_rate": 1e-3,
        **(fault.settings if fault else {}),
    }
    wrap = wrapped(fault.wrap if fault else None)
    # The fault lies below the Monitor, as in an environment of one's own.
    envs = make_vec_env(lambda **_: wrap(Lengths(gym.make(env))), n_envs=4, seed=seed)
    model = PPO("MlpPolicy", envs, seed=seed, device="cpu", **settings)
    model.set_logger(configure(str(folder), ["csv"] if env == "CartPole-v1" else ["tensorboard"]))
    model.learn(STEPS[env])
    model.save(folder / "model")


def cleanrl(fault: ForeignFault | None, env: str, seed: int, folder: Path, scripts: Path) -> None:
    script = scripts / ("ppo_continuous_action.py" if env in CONTINUOUS else "ppo.py")
    settings: dict[str, Any] = {
        "num_envs": 4,
        "num_steps": 64,
        "num_minibatches": 4,
        "update_epochs": 4,
        "learning_rate": 1e-3,
    }
    settings |= {CLEANRL_NAMES.get(name, name): x for name, x in (fault.settings if fault else {}).items()}
    if "batch_size" in settings:
        settings["num_minibatches"] = 256 // settings.pop("batch_size")
    if env in CONTINUOUS:
        settings["num_envs"], settings["num_steps"] = 1, 256
    options = {**settings, "env_id": env, "seed": seed, "total_timesteps": STEPS[env]}
    wrap, make = wrapped(fault.wrap if fault else None), gym.make
    gym.make = lambda name, **_: wrap(Lengths(make(name, disable_env_checker=True)))  # type: ignore[assignment]
    here, arguments = Path.cwd(), sys.argv
    folder.mkdir(parents=True)
    os.chdir(folder)
    sys.argv = [str(script), "--no-cuda"]
    for name, value in options.items():
        sys.argv += [f"--{name.replace('_', '-')}", str(value)]
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            runpy.run_path(str(script), run_name="__main__")
    finally:
        os.chdir(here)
        gym.make, sys.argv = make, arguments


def main() -> None:
    import torch

    torch.set_num_threads(1)
    library, folder = sys.argv[1], Path(sys.argv[2])
    faults = {fault.name: fault for fault in FAULTS}
    for line in sys.stdin:
        case = json.loads(line)
        fault, begin = faults.get(case["fault"]), time.process_time()
        Lengths.returns.clear()
        where = folder / f"{library}-{case['fault']}-{case['env']}-{case['seed']}"
        if library == "sb3":
            sb3(fault, case["env"], case["seed"], where)
        else:
            cleanrl(fault, case["env"], case["seed"], where, Path(sys.argv[3]))
        n, returns = len(Lengths.returns), Lengths.returns
        few = max(1, n // 5)
        result = {"start": sum(returns[:20]) / max(1, len(returns[:20])), "end": sum(returns[-few:]) / few}
        seconds = round(time.process_time() - begin, 2)
        print(json.dumps({**case, **result, "folder": str(where), "cpu_seconds": seconds}), flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    main()
