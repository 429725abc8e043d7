"""SB3's functions around `PPO`: `evaluate_policy` and `make_vec_env`."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Literal, overload

import torch

from surefoot.envs.api import World
from surefoot.envs.make import Backend, EnvLike, Wrap, backend_of, make_world
from surefoot.envs.workers.placement import Workers
from surefoot.nets.policy import Policy
from surefoot.train.assemble import evaluation_world
from surefoot.train.evaluate import EVAL_SEED_OFFSET, play
from surefoot.train.facade import PPO
from surefoot.train.interop.sb3_names import VecNormalize
from surefoot.train.predict import refuse_other_spaces

log = logging.getLogger("surefoot")


@overload
def evaluate_policy(
    model: PPO | Policy,
    env: EnvLike | VecNormalize,
    n_eval_episodes: int = ...,
    deterministic: bool = ...,
    *,
    return_episode_rewards: Literal[False] = ...,
    seed: int | None = ...,
) -> tuple[float, float]: ...
@overload
def evaluate_policy(
    model: PPO | Policy,
    env: EnvLike | VecNormalize,
    n_eval_episodes: int = ...,
    deterministic: bool = ...,
    *,
    return_episode_rewards: Literal[True],
    seed: int | None = ...,
) -> tuple[list[float], list[int]]: ...
def evaluate_policy(
    model: PPO | Policy,
    env: EnvLike | VecNormalize,
    n_eval_episodes: int = 10,
    deterministic: bool = True,
    *,
    return_episode_rewards: bool = False,
    seed: int | None = None,
) -> tuple[float, float] | tuple[list[float], list[int]]:
    """Return mean and standard deviation of the raw returns of complete episodes.

    If `env` is the env that the model trains in, training continues afterwards from the same state, or with
    new episodes if the env cannot save its state.

    Args:
        model: A `PPO`, or a policy.
        env: The environment to play in: an id, a function that makes it, an env, or a world.
        n_eval_episodes: Number of episodes.
        deterministic: Take the most likely actions instead of sampling.
        return_episode_rewards: Return all returns and all lengths instead.
        seed: Seed of the episodes. Default: the model's plus 1,000,003, so that none of them was trained on.
    """
    policy, device = (model.policy, model.device) if isinstance(model, PPO) else (model, torch.device("cpu"))
    training = model.training if isinstance(model, PPO) and model.get_env() is not None else None
    if seed is None:
        seed = EVAL_SEED_OFFSET + (model.spec.seed if isinstance(model, PPO) else 0)
    with evaluation_world(training, env, n_eval_episodes) as world:
        if isinstance(model, PPO):
            refuse_other_spaces(model.spaces.observation, model.spaces.action, world)
        result = play(policy, world, n_eval_episodes, seed=seed, deterministic=deterministic, device=device)
    return (result.returns, result.lengths) if return_episode_rewards else (result.mean, result.std)


def make_vec_env(
    env_id: EnvLike,
    n_envs: int = 1,
    seed: int | None = None,
    *,
    env_kwargs: Mapping[str, Any] | None = None,
    wrapper_class: Wrap | None = None,
    backend: Backend = "auto",
    workers: Workers = "auto",
) -> World:
    """Return `n_envs` copies of an env as one vectorized world.

    A built-in vectorized world is used if there is one for the id (the logger "surefoot" reports it).

    Args:
        env_id: An id, a function that makes an env, or an env class.
        n_envs: Number of copies.
        seed: Resets the world with this seed. `PPO` seeds its world itself, so this only matters if you step it.
        env_kwargs: Arguments for the env's constructor.
        wrapper_class: Wrapper applied to each env.
        backend: "gymnasium" uses Gymnasium's env even if there is a built-in world.
        workers: Worker processes that step the envs besides this one; "auto" measures whether they are faster.
    """
    wrappers = [] if wrapper_class is None else [wrapper_class]
    world = make_world(env_id, n_envs, backend=backend, env_kwargs=env_kwargs, wrappers=wrappers, workers=workers)
    if backend_of(world) == "surefoot":
        log.info("%s: built-in vectorized world; backend='gymnasium' uses Gymnasium's env", world.name)
    if seed is not None:
        world.reset(seed)
    return world
