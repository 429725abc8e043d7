"""SB3's `evaluate_policy`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from surefoot.compat.sb3.record.monitor import Monitor
from surefoot.compat.sb3.vec_env import DummyVecEnv, VecEnv, VecMonitor, is_vecenv_wrapped
from surefoot.compat.sb3.vec_env.foreign import as_vec_env


def evaluate_policy(
    model: Any,
    env: Any,
    n_eval_episodes: int = 10,
    deterministic: bool = True,
    render: bool = False,
    callback: Callable[[dict[str, Any], dict[str, Any]], None] | None = None,
    reward_threshold: float | None = None,
    return_episode_rewards: bool = False,
    warn: bool = True,
    extra: Callable[[VecEnv], dict[str, Any]] = lambda env: {},
) -> Any:
    """Return mean and deviation of the returns of complete episodes, or all returns and lengths.

    With several envs each plays its share of the episodes. A `Monitor` gives the returns before other wrappers changed the
    rewards; without one there is a warning. `callback(locals, globals)` is called after each step of each env.
    `extra(env)` returns more arguments for `model.predict`.
    """
    env = as_vec_env(env)
    if not isinstance(env, VecEnv):
        single = env
        env = DummyVecEnv([lambda: single])
    monitored = is_vecenv_wrapped(env, VecMonitor) or env.env_is_wrapped(Monitor)[0]
    if not monitored and warn:
        warnings.warn(
            "the evaluation env has no Monitor; wrappers that change rewards or lengths would change the results",
            UserWarning,
            stacklevel=3,
        )
    n_envs = env.num_envs
    # The first episodes to end are the short ones, so each env plays a fixed number of them.
    targets = np.array([(n_eval_episodes + i) // n_envs for i in range(n_envs)])
    counts, returns, lengths = np.zeros(n_envs, int), np.zeros(n_envs), np.zeros(n_envs, int)
    episode_rewards: list[float] = []
    episode_lengths: list[int] = []
    observations, states = env.reset(), None
    episode_starts = np.ones(n_envs, bool)
    while (counts < targets).any():
        actions, states = model.predict(
            observations, state=states, episode_start=episode_starts, deterministic=deterministic, **extra(env)
        )
        new_observations, rewards, dones, infos = env.step(actions)
        returns += rewards
        lengths += 1
        for i in np.flatnonzero(counts < targets):
            done, info = dones[i], infos[i]
            episode_starts[i] = done
            if callback is not None:
                callback({**locals(), "i": i, "reward": rewards[i]}, globals())
            if done:
                if not monitored:
                    episode_rewards.append(float(returns[i]))
                    episode_lengths.append(int(lengths[i]))
                    counts[i] += 1
                elif "episode" in info:
                    # A lost life ends an episode for the wrappers only, not for the monitor.
                    episode_rewards.append(info["episode"]["r"])
                    episode_lengths.append(info["episode"]["l"])
                    counts[i] += 1
                returns[i], lengths[i] = 0.0, 0
        observations = new_observations
        if render:
            env.render()
    mean, std = float(np.mean(episode_rewards)), float(np.std(episode_rewards))
    if reward_threshold is not None:
        assert mean > reward_threshold, f"the mean reward {mean:.2f} is below the threshold {reward_threshold:.2f}"
    return (episode_rewards, episode_lengths) if return_episode_rewards else (mean, std)
