"""`VecNormalize`: running normalisation of observations and rewards, as an env."""

from __future__ import annotations

import copy
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from surefoot.compat.sb3.spaces import check_shape_equal, is_image_space
from surefoot.compat.sb3.vec_env.base import VecEnv, VecEnvStepReturn, VecEnvWrapper
from surefoot.learn.checkpoint.vecnormalize import read_vecnormalize

FORMAT = "surefoot.sb3.VecNormalize"


class RunningMeanStd:
    """Mean and variance of all rows so far, merged by the formula of Chan et al. (1979)."""

    def __init__(self, epsilon: float = 1e-4, shape: tuple[int, ...] = ()) -> None:
        """`epsilon` is the weight of the first guess, mean 0 and variance 1, in rows."""
        self.mean, self.var = np.zeros(shape, np.float64), np.ones(shape, np.float64)
        self.count: float = epsilon

    def copy(self) -> RunningMeanStd:
        return copy.deepcopy(self)

    def combine(self, other: RunningMeanStd) -> None:
        """Merge in the rows of `other`."""
        self.update_from_moments(other.mean, other.var, other.count)

    def update(self, arr: np.ndarray) -> None:
        """Merge in the rows [M, …] of an array."""
        # The digits of np.mean and np.var in a fifth of their time: an env is stepped for each of these calls.
        rows = arr if arr.dtype.name in ("float32", "float64") else np.asarray(arr, np.float64)
        mean = np.add.reduce(rows, axis=0) / len(rows)
        off = rows - mean
        self.update_from_moments(mean, np.add.reduce(off * off, axis=0) / len(rows), len(rows))

    def update_from_moments(self, batch_mean: Any, batch_var: Any, batch_count: float) -> None:
        """Merge in `batch_count` rows of which mean and variance are known."""
        total = self.count + batch_count
        delta = batch_mean - self.mean
        squares = self.var * self.count + batch_var * batch_count + delta**2 * (self.count * batch_count / total)
        self.mean, self.var, self.count = self.mean + delta * (batch_count / total), squares / total, total


class VecNormalize(VecEnvWrapper):
    """Observations with mean 0 and deviation 1, rewards divided by the deviation of the discounted return.

    The statistics change in every step while `training` is True, as in SB3. `save` writes JSON, no pickle.
    """

    obs_rms: Any

    def __init__(
        self,
        venv: VecEnv,
        training: bool = True,
        norm_obs: bool = True,
        norm_reward: bool = True,
        clip_obs: float = 10.0,
        clip_reward: float = 10.0,
        gamma: float = 0.99,
        epsilon: float = 1e-8,
        norm_obs_keys: list[str] | None = None,
    ) -> None:
        super().__init__(venv)
        self.training, self.norm_obs, self.norm_reward = training, norm_obs, norm_reward
        self.clip_obs, self.clip_reward = clip_obs, clip_reward
        self.gamma, self.epsilon = gamma, epsilon
        self.norm_obs_keys = self._chosen_keys(norm_obs_keys) if norm_obs else norm_obs_keys
        if norm_obs:
            self._begin_statistics()
        self.ret_rms = RunningMeanStd(shape=())
        self.returns = np.zeros(self.num_envs)
        self.old_reward, self.old_obs = np.zeros(self.num_envs), None

    def _chosen_keys(self, keys: list[str] | None) -> list[str] | None:
        space = self.observation_space
        if isinstance(space, gym.spaces.Dict):
            chosen = list(space.spaces) if keys is None else keys
            for key in chosen:
                if not isinstance(space.spaces[key], gym.spaces.Box):
                    raise ValueError(
                        f"VecNormalize only supports Box, but {key!r} is {space.spaces[key]}; please explicitly pass the "
                        f"observation keys to normalize: norm_obs_keys=[…]"
                    )
            return chosen
        if not isinstance(space, gym.spaces.Box):
            raise ValueError(f"VecNormalize only supports Box and Dict observations, not {space}; pass norm_obs=False")
        if keys is not None:
            raise ValueError(f"norm_obs_keys is applicable only to Dict observations, not to {space}")
        return None

    def _begin_statistics(self) -> None:
        space = self.observation_space
        if isinstance(space, gym.spaces.Dict):
            chosen = self.norm_obs_keys or []
            self.obs_rms = {key: RunningMeanStd(shape=_shape(space.spaces[key])) for key in chosen}
            parts = {k: self._limits(part) if k in chosen else part for k, part in space.spaces.items()}
            self.observation_space = gym.spaces.Dict(parts)
        else:
            self.obs_rms = RunningMeanStd(shape=_shape(space))
            self.observation_space = self._limits(space)

    def _limits(self, space: gym.Space[Any]) -> gym.Space[Any]:
        # A normalized image has no bytes any more, and a policy recognizes images by their bounds. Other spaces stay, as in SB3.
        if not is_image_space(space):
            return space
        return gym.spaces.Box(-self.clip_obs, self.clip_obs, _shape(space), np.float32)

    def set_venv(self, venv: VecEnv) -> None:
        """Set the vec env of an object that was loaded or copied without one."""
        if self.__dict__.get("venv") is not None:
            raise ValueError("this VecNormalize has a vec env already; create a new one")
        self.venv = venv
        self.num_envs, self.action_space, self.render_mode = venv.num_envs, venv.action_space, venv.render_mode
        check_shape_equal(self.observation_space, venv.observation_space)
        self.returns = np.zeros(self.num_envs)

    def __getstate__(self) -> dict[str, Any]:
        return {name: x for name, x in self.__dict__.items() if name not in ("venv", "returns")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    def step_wait(self) -> VecEnvStepReturn:
        obs, rewards, dones, infos = self.venv.step_wait()
        obs, rewards = self.after_step(obs, rewards, dones)
        for i, done in enumerate(dones):
            if done and "terminal_observation" in infos[i]:
                infos[i]["terminal_observation"] = self.normalize_obs(infos[i]["terminal_observation"])
        return obs, rewards, dones, infos

    def after_step(self, obs: Any, rewards: np.ndarray, dones: np.ndarray) -> tuple[Any, np.ndarray]:
        """Update the statistics with the results of one step and return (observations, rewards) normalized with them."""
        self.old_obs, self.old_reward = obs, rewards
        if self.training and self.norm_obs:
            self._absorb(obs)
        if self.training:
            self._update_reward(rewards)
        self.returns[dones] = 0.0
        return self.normalize_obs(obs), self.normalize_reward(rewards)

    def reset(self) -> Any:
        return self.after_reset(self.venv.reset())

    def after_reset(self, obs: Any) -> Any:
        """Start new returns, and return the first observations normalized."""
        self.old_obs, self.returns = obs, np.zeros(self.num_envs)
        if self.training and self.norm_obs:
            self._absorb(obs)
        return self.normalize_obs(obs)

    def _absorb(self, obs: Any) -> None:
        if isinstance(self.obs_rms, dict):
            for key, moments in self.obs_rms.items():
                moments.update(obs[key])
        else:
            self.obs_rms.update(obs)

    def _update_reward(self, reward: np.ndarray) -> None:
        self.returns = self.returns * self.gamma + reward
        self.ret_rms.update(self.returns)

    def normalize_obs(self, obs: Any) -> Any:
        """Return observations normalized with the current statistics, which do not change."""

        def normal(x: np.ndarray, m: RunningMeanStd) -> np.ndarray:
            y = (x - m.mean) / np.sqrt(m.var + self.epsilon)
            return _limited(y, self.clip_obs)

        return self._map_obs(obs, normal)

    def unnormalize_obs(self, obs: Any) -> Any:
        """Return normalized observations in their own units."""
        return self._map_obs(obs, lambda x, m: x * np.sqrt(m.var + self.epsilon) + m.mean)

    def _map_obs(self, obs: Any, change: Callable[[np.ndarray, RunningMeanStd], np.ndarray]) -> Any:
        if not self.norm_obs:
            return copy.deepcopy(obs)
        if isinstance(self.obs_rms, dict):
            return {**obs, **{key: change(np.asarray(obs[key]), m) for key, m in self.obs_rms.items()}}
        return change(np.asarray(obs), self.obs_rms)

    def normalize_reward(self, reward: np.ndarray) -> np.ndarray:
        """Return rewards scaled with the current statistics."""
        if not self.norm_reward:
            return reward
        scaled = np.asarray(reward) / np.sqrt(self.ret_rms.var + self.epsilon)
        return _limited(scaled, self.clip_reward)

    def unnormalize_reward(self, reward: np.ndarray) -> np.ndarray:
        """Return scaled rewards in their own units."""
        return reward * np.sqrt(self.ret_rms.var + self.epsilon) if self.norm_reward else reward

    def get_original_obs(self) -> Any:
        """Return the last observations before normalization."""
        return copy.deepcopy(self.old_obs)

    def get_original_reward(self) -> np.ndarray:
        """Return the last rewards before scaling."""
        return self.old_reward.copy()

    def save(self, save_path: str | Path) -> None:
        """Write the statistics and settings as JSON. The vec env is not saved."""
        rms = {"ret": self.ret_rms}
        if self.norm_obs:
            rms |= {f"obs.{k}": m for k, m in self.obs_rms.items()} if self.norm_obs_keys else {"obs": self.obs_rms}
        text = {
            "format": FORMAT,
            "settings": {name: getattr(self, name) for name in SETTINGS},
            "moments": {k: {"mean": m.mean.tolist(), "var": m.var.tolist(), "count": m.count} for k, m in rms.items()},
        }
        Path(save_path).write_text(json.dumps(text), encoding="utf-8")

    @classmethod
    def load(cls, load_path: str | Path, venv: VecEnv) -> VecNormalize:
        """Return the `VecNormalize` that `save` wrote, around `venv`; one of SB3 without the scale of rewards."""
        try:
            saved = json.loads(Path(load_path).read_bytes())
        except (UnicodeDecodeError, json.JSONDecodeError):
            return cls._from_sb3(Path(load_path), venv)
        if saved.get("format") != FORMAT:
            raise ValueError(f"{load_path} was not written by VecNormalize.save of surefoot.sb3 or Stable-Baselines3")
        self = cls(venv, **saved["settings"])
        for name, moments in saved["moments"].items():
            target = self.ret_rms if name == "ret" else self.obs_rms if name == "obs" else self.obs_rms[name[4:]]
            target.mean, target.var = np.array(moments["mean"]), np.array(moments["var"])
            target.count = moments["count"]
        return self

    @classmethod
    def _from_sb3(cls, path: Path, venv: VecEnv) -> VecNormalize:
        # SB3's file is a pickle, which is read without running it.
        statistics = read_vecnormalize(path)
        if statistics is None:
            return cls(venv, norm_obs=False)
        self = cls(venv, clip_obs=statistics.clip, epsilon=statistics.epsilon)
        self.obs_rms.mean, self.obs_rms.var, self.obs_rms.count = statistics.mean, statistics.var, statistics.count
        warnings.warn(f"of {path} the statistics of observations are read; rewards are scaled anew", stacklevel=3)
        return self

    @property
    def ret(self) -> np.ndarray:
        """Former name of `returns`."""
        return self.returns


SETTINGS = (
    "training norm_obs norm_reward clip_obs clip_reward gamma epsilon norm_obs_keys".split()  # noqa: SIM905
)


def _limited(x: np.ndarray, limit: float) -> np.ndarray:
    """Return np.clip(x, -limit, limit) as float32; two ufuncs are faster on small arrays."""
    return np.minimum(np.maximum(x, -limit), limit).astype(np.float32)


def _shape(space: gym.Space[Any]) -> tuple[int, ...]:
    assert space.shape is not None
    return space.shape
