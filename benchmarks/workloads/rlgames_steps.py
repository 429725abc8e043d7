"""W3 by rl_games, with a CartPole in torch for it to play: the kind of env it is made for. Prints JSON.

python rlgames_steps.py
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import sys
import tempfile
from typing import Any

from clock import Laps, cpu, tell
from shapes import SHAPES

SHAPE = SHAPES["W3"]
COMPILES = any(shutil.which(name) for name in ("c++", "g++", "clang++"))
"""It compiles its networks unless told not to, and torch needs a C++ compiler for that."""


class Enough(Exception):
    """Raised after the last measured update: the ways that rl_games has to stop also write checkpoints."""


def main(scratch: str) -> None:
    # Cold as everyone's compiler is, and in this process, whose time is counted.
    os.environ |= {"TORCHINDUCTOR_CACHE_DIR": os.path.join(scratch, "compiled"), "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    import gymnasium
    import numpy as np
    import torch

    torch.set_num_threads(1)
    from rl_games.common import env_configurations, vecenv
    from rl_games.common.algo_observer import AlgoObserver
    from rl_games.common.ivecenv import IVecEnv
    from rl_games.torch_runner import Runner

    class TorchCartPole(IVecEnv):
        """CartPole-v1's equations and limits on tensors; a stream that ends begins again in the same step."""

        first = 0.0

        def __init__(self, num_actors: int) -> None:
            self.state = torch.empty(num_actors, 4).uniform_(-0.05, 0.05)
            self.age = torch.zeros(num_actors, dtype=torch.int32)
            self.one = torch.ones(num_actors)

        def reset(self) -> torch.Tensor:
            return self.state

        def step(self, actions: torch.Tensor) -> tuple[Any, ...]:
            x, v, angle, spin = self.state.unbind(1)
            force = actions.reshape(-1).float() * 20.0 - 10.0
            cos, sin = angle.cos(), angle.sin()
            push = (force + 0.05 * spin.square() * sin) / 1.1
            turn = (9.8 * sin - cos * push) / (0.5 * (4.0 / 3.0 - 0.1 * cos.square() / 1.1))
            speed_up = push - 0.05 * turn * cos / 1.1
            state = torch.stack((x + 0.02 * v, v + 0.02 * speed_up, angle + 0.02 * spin, spin + 0.02 * turn), 1)
            self.age += 1
            fell = (state[:, 0].abs() > 2.4) | (state[:, 2].abs() > 12 * 2 * math.pi / 360)
            cut = (self.age >= 500) & ~fell
            done = fell | cut
            fresh = torch.empty_like(state).uniform_(-0.05, 0.05)
            self.state = torch.where(done[:, None], fresh, state)
            self.age.masked_fill_(done, 0)
            TorchCartPole.first = TorchCartPole.first or cpu()
            return self.state, self.one, done, {"time_outs": cut}

        def get_env_info(self) -> dict[str, Any]:
            box = gymnasium.spaces.Box(-np.inf, np.inf, (4,), np.float32)
            return {"observation_space": box, "action_space": gymnasium.spaces.Discrete(2), "agents": 1}

    class Marks(AlgoObserver):
        """Called after every update."""

        begin, warm_up, laps = 0, 0.0, Laps(0.0)

        def after_init(self, algo: Any) -> None:
            self.algo = algo

        def after_print_stats(self, frame: int, epoch_num: int, total_time: float) -> None:
            if epoch_num == SHAPE.warm_up:
                self.begin, self.warm_up = frame, cpu() - TorchCartPole.first
                self.laps.begin()
            elif epoch_num == SHAPE.warm_up + SHAPE.updates:
                self.laps.end(frame - self.begin)
                raise Enough

    vecenv.register("TORCH_CARTPOLE", lambda config_name, num_actors, **kwargs: TorchCartPole(num_actors))
    env_configurations.register("torch_cartpole", {"vecenv_type": "TORCH_CARTPOLE", "env_creator": TorchCartPole})
    marks = Marks()
    with contextlib.redirect_stdout(sys.stderr):
        runner = Runner(marks)
        runner.load({"params": settings(scratch)})
        with contextlib.suppress(Enough):
            runner.run({"train": True})
    per_update = marks.laps.used / SHAPE.updates
    tell(
        **marks.laps.numbers(),
        # What the updates of warm-up took beyond their like; compiling for acting is in the first step.
        compile_cpu_seconds=max(0.0, marks.warm_up - SHAPE.warm_up * per_update) if COMPILES else 0.0,
        first_step_cpu_seconds=TorchCartPole.first,
        final_return=float(marks.algo.game_rewards.get_mean()[0]),
    )


def settings(scratch: str) -> dict[str, Any]:
    """As its own CartPole config, with W3's shapes and the net that all have."""
    return {
        "seed": 1,
        "torch_threads": 1,
        "algo": {"name": "a2c_discrete"},
        "model": {"name": "discrete_a2c"},
        "network": {
            "name": "actor_critic",
            "separate": True,
            "space": {"discrete": {}},
            "mlp": {"units": [64, 64], "activation": "tanh", "initializer": {"name": "default"}},
        },
        "config": {
            "name": "w3",
            "train_dir": os.path.join(scratch, "runs"),
            "env_name": "torch_cartpole",
            "device": "cpu",
            "device_name": "cpu",
            "multi_gpu": False,
            "torch_compile": COMPILES,
            "reward_shaper": {"scale_value": 0.1},
            "normalize_advantage": True,
            "normalize_input": False,
            "normalize_value": False,
            "value_bootstrap": True,
            "gamma": 0.99,
            "tau": 0.95,
            "learning_rate": 3e-4,
            "lr_schedule": None,
            "grad_norm": 0.5,
            "truncate_grads": True,
            "entropy_coef": 0.0,
            "critic_coef": 1,
            "e_clip": 0.2,
            "clip_value": True,
            "kl_threshold": 0.008,
            "score_to_win": 10**9,
            "max_epochs": 10**9,
            "save_best_after": 10**9,
            "save_frequency": 0,
            "print_stats": False,
            "num_actors": SHAPE.envs,
            "horizon_length": SHAPE.steps,
            "minibatch_size": SHAPE.minibatch,
            "mini_epochs": SHAPE.epochs,
        },
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(folder)
