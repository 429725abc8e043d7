"""Stable-Baselines3 on towns as a PettingZoo env, every agent a stream (SuperSuit's way). Prints JSON: steps, CPU-seconds.

python sb3_town.py SCENARIO.json TOWNS TICKS UPDATES KERNEL     with the repository's src on PYTHONPATH; KERNEL is the
    compiled module, so that the env is as fast as for somebody who installed the package; "" for numpy
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from pathlib import Path
from typing import Any


def load_kernel(path: str) -> None:
    """Make the compiled module importable, which an installation puts beside the source."""
    name = "surefoot.native._kernel"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])


def main(file: str, towns: int, ticks: int, updates: int) -> None:
    import numpy as np
    import torch

    torch.set_num_threads(1)
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import VecEnv

    from surefoot.town.scenarios.scenario import Scenario
    from surefoot.town.sim.parallel_env import TownEnv

    scenario = Scenario.from_json(json.loads(Path(file).read_text()))

    class Agents(VecEnv):
        """Towns × agents as streams; a town whose agents have all ended is reset."""

        def __init__(self) -> None:
            self.envs = [TownEnv(scenario) for _ in range(towns)]
            self.names = self.envs[0].possible_agents
            one = self.names[0]
            super().__init__(
                towns * len(self.names), self.envs[0].observation_space(one), self.envs[0].action_space(one)
            )

        def reset(self) -> Any:
            return np.stack([x for i, env in enumerate(self.envs) for x in self._rows(env, env.reset(seed=i)[0])])

        def _rows(self, env: Any, obs: dict[str, Any]) -> list[Any]:
            return [obs.get(name, np.zeros(self.observation_space.shape, np.float32)) for name in self.names]

        def step_async(self, actions: Any) -> None:
            self.actions = actions.reshape(towns, -1)

        def step_wait(self) -> Any:
            seen, rewards, dones, infos = [], [], [], []
            for env, row in zip(self.envs, self.actions, strict=True):
                chosen = {name: int(a) for name, a in zip(self.names, row, strict=True) if name in env.agents}
                obs, reward, terminated, truncated, _ = env.step(chosen)
                rewards += [reward.get(name, 0.0) for name in self.names]
                dones += [terminated.get(name, False) or truncated.get(name, False) for name in self.names]
                infos += [
                    {"TimeLimit.truncated": truncated.get(name, False), "terminal_observation": obs.get(name)}
                    for name in self.names
                ]
                if not env.agents:
                    obs, _ = env.reset()
                seen += self._rows(env, obs)
            return np.stack(seen), np.array(rewards, np.float32), np.array(dones), infos

        def close(self) -> None: ...
        def get_attr(self, attr_name: str, indices: Any = None) -> Any:
            return [None] * self.num_envs

        def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None: ...
        def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
            return [None] * self.num_envs

        def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> Any:
            return [False] * self.num_envs

    env = Agents()
    model = PPO(
        "MlpPolicy",
        env,
        n_steps=ticks,
        batch_size=2048,
        n_epochs=4,
        gamma=0.98,
        ent_coef=0.01,
        learning_rate=1e-3,
        seed=0,
        device="cpu",
    )
    begin = time.process_time()
    model.learn(updates * ticks * env.num_envs)
    print(json.dumps({"steps": updates * ticks * env.num_envs, "cpu": time.process_time() - begin}))


if __name__ == "__main__":
    if sys.argv[5]:
        load_kernel(sys.argv[5])
    main(sys.argv[1], *(int(x) for x in sys.argv[2:5]))
