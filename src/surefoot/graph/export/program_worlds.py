"""Environments of a standalone program; `standalone` copies their source."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from surefoot.envs.api import Step, View
from surefoot.envs.builtin.streams import Task


class GymCopies:
    """N copies of a Gymnasium environment; a copy that ends begins its next episode in the same step."""

    def __init__(self, env_id: str, num_envs: int) -> None:
        self.envs = [gym.make(env_id, disable_env_checker=True) for _ in range(num_envs)]
        self.name, self.num_envs, self.space = env_id, num_envs, self.envs[0].action_space
        self.dtype = np.uint8 if self.envs[0].observation_space.dtype == np.uint8 else np.float32

    def reset(self, seed: int) -> View:
        """Return the first observations of all copies."""
        return View(obs={"obs": self._stack([env.reset(seed=seed + i)[0] for i, env in enumerate(self.envs)])})

    def step(self, action: np.ndarray) -> Step:
        """Take one action per copy."""
        count = self.num_envs
        actions = np.array(action, self.space.dtype).reshape(count, *(self.space.shape or ()))
        reward, terminated, truncated = np.empty(count), np.zeros(count, bool), np.zeros(count, bool)
        observations: list[Any] = []
        for i, env in enumerate(self.envs):
            obs, reward[i], terminated[i], cut, _ = env.step(actions[i])
            # An episode that ends both ways is terminated: its future has no value.
            truncated[i] = cut and not terminated[i]
            observations.append(obs)
        final = self._stack(observations)
        obs = final.copy()
        for i in np.flatnonzero(terminated | truncated):
            obs[i] = self.envs[i].reset()[0]
        return Step(
            view=View(obs={"obs": obs}),
            reward=reward,
            terminated=terminated,
            truncated=truncated,
            valid=np.ones(count, bool),
            final_obs={"obs": final},
        )

    def _stack(self, observations: list[Any]) -> np.ndarray:
        return np.stack(observations).astype(self.dtype)


class TaskCopies:
    """N copies of a task that is written in numpy; a copy that ends begins its next episode in the same step."""

    inexact = None

    def __init__(self, task: Task, num_envs: int) -> None:
        self.task, self.name, self.num_envs = task, type(task).__name__, num_envs
        self.observation, self.action = {"obs": task.observation}, task.action
        self.limit = task.max_episode_steps if task.max_episode_steps is not None else 2**62

    def reset(self, seed: int) -> View:
        """Return the first observations of all copies."""
        self.rng = np.random.Generator(np.random.PCG64(seed))
        self.numbers = self.task.start(self.rng, self.num_envs)
        self.age = np.zeros(self.num_envs, np.int64)
        return View(obs={"obs": self.task.observe(self.numbers)})

    def step(self, action: np.ndarray) -> Step:
        """Take one action per copy."""
        self.numbers, reward, terminated = self.task.advance(self.numbers, action, self.rng)
        self.age += 1
        truncated = (self.age >= self.limit) & ~terminated
        final = obs = self.task.observe(self.numbers)
        ended = (terminated | truncated).nonzero()[0]
        if len(ended):
            first = self.task.start(self.rng, len(ended))
            self.numbers[:, ended], self.age[ended] = first, 0
            obs = final.copy()
            obs[ended] = self.task.observe(first)
        return Step(
            view=View(obs={"obs": obs}),
            reward=reward,
            terminated=terminated,
            truncated=truncated,
            valid=np.ones(self.num_envs, bool),
            final_obs={"obs": final},
        )


class SideBySide:
    """Several environments as one: rows of the first, then of the second, and so on. Each has its own seed."""

    def __init__(self, *worlds: tuple[Any, int]) -> None:
        self.worlds, self.seeds = [world for world, _ in worlds], [seed for _, seed in worlds]
        self.cuts = np.cumsum([world.num_envs for world in self.worlds])
        self.num_envs = int(self.cuts[-1])

    def reset(self, seed: int) -> View:
        """Return the first observations of all rows; `seed` is not used."""
        views = [world.reset(each) for world, each in zip(self.worlds, self.seeds, strict=True)]
        return View(obs={"obs": np.concatenate([view.obs["obs"] for view in views])})

    def step(self, action: np.ndarray) -> Step:
        """Take one action per row."""
        steps: list[Step] = [
            world.step(part) for world, part in zip(self.worlds, np.split(action, self.cuts[:-1]), strict=True)
        ]
        return Step(
            view=View(obs={"obs": np.concatenate([step.view.obs["obs"] for step in steps])}),
            reward=np.concatenate([step.reward for step in steps]),
            terminated=np.concatenate([step.terminated for step in steps]),
            truncated=np.concatenate([step.truncated for step in steps]),
            valid=np.ones(self.num_envs, bool),
            final_obs={"obs": np.concatenate([(step.final_obs or step.view.obs)["obs"] for step in steps])},
        )
