"""The names people know from Stable-Baselines3: `PPO`, `evaluate_policy`, `make_vec_env`, on the engine of this house."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self, overload

import gymnasium as gym
import torch

from surefoot.envs.api import World
from surefoot.envs.gym.single_envs import EnvsWorld
from surefoot.envs.make import Backend, EnvLike, Wrap, backend_of, make_world, placement_of
from surefoot.envs.workers.placement import Workers
from surefoot.errors import ConfigError
from surefoot.learn.checkpoint.checkpoint import save_checkpoint
from surefoot.nets.actor_critic import policy_from_description
from surefoot.nets.policy import Policy, load_weights
from surefoot.train.assemble import (
    assemble,
    move_in,
    open_world,
    own_policy,
    playground,
    read_model,
    refuse_other_place,
    set_length,
)
from surefoot.train.config import split_settings
from surefoot.train.device import choose_device, pin_threads
from surefoot.train.evaluate import EVAL_SEED_OFFSET, play
from surefoot.train.interop.sb3_names import (
    DummyVecEnv,
    SubprocVecEnv,
    VecNormalize,
    refuse_attribute,
    says_stop,
    watchers,
)
from surefoot.train.interrupt import GentleStop
from surefoot.train.learn_output import Telling, curves_directory
from surefoot.train.predict import Spaces, choose, refuse_other_spaces, spaces_of
from surefoot.train.spec import RunSpec
from surefoot.train.training import Training

log = logging.getLogger("surefoot")

PREDICT_SEED_OFFSET = 2_000_003
"""Added to a run's seed for `predict`, so that looking at a policy never moves the numbers it trains with."""


class _Unset:
    def __repr__(self) -> str:
        return "from the preset"


UNSET: Any = _Unset()


class PPO:
    """A policy, the world it lives in and all that learning needs, behind the methods of SB3's PPO.

    What is left unset comes from the preset of the env's family (verbose=1 prints it); preset="sb3" takes SB3's
    defaults instead. Every other name a knob goes by works too, as in PPO("MlpPolicy", env, clip_coef=0.1).
    Unlike SB3's, seed=None means 0: two runs are the same unless they are told not to be.
    """

    def __init__(
        self,
        policy: str | Policy,
        env: EnvLike | VecNormalize,
        learning_rate: Any = UNSET,
        n_steps: int = UNSET,
        batch_size: int = UNSET,
        n_epochs: int = UNSET,
        gamma: float = UNSET,
        gae_lambda: float = UNSET,
        clip_range: Any = UNSET,
        clip_range_vf: float | None = UNSET,
        normalize_advantage: bool | str = UNSET,
        ent_coef: Any = UNSET,
        vf_coef: float = UNSET,
        max_grad_norm: float = UNSET,
        use_sde: bool = UNSET,
        sde_sample_freq: int = UNSET,
        *,
        target_kl: float | None = UNSET,
        tensorboard_log: str | Path | None = None,
        policy_kwargs: Mapping[str, Any] | None = None,
        verbose: int = 0,
        seed: int | None = None,
        device: str = UNSET,
        preset: str | None = None,
        n_envs: int | None = None,
        **aliases: Any,
    ) -> None:
        said = {
            "learning_rate": learning_rate,
            "n_steps": n_steps,
            "batch_size": batch_size,
            "n_epochs": n_epochs,
            "gamma": gamma,
            "gae_lambda": gae_lambda,
            "clip_range": clip_range,
            "clip_range_vf": clip_range_vf,
            "normalize_advantage": normalize_advantage,
            "ent_coef": ent_coef,
            "vf_coef": vf_coef,
            "max_grad_norm": max_grad_norm,
            "use_sde": use_sde,
            "sde_sample_freq": sde_sample_freq,
            "target_kl": target_kl,
            "policy_kwargs": UNSET if policy_kwargs is None else policy_kwargs,
            "seed": UNSET if seed is None else seed,
            "device": device,
            "n_envs": UNSET if n_envs is None else n_envs,
        }
        threads = pin_threads()
        settings = {name: value for name, value in said.items() if value is not UNSET} | aliases
        training, origin = assemble(policy, env, settings, preset)
        self.training: Training | None = training
        """World, collector and learner; None for a model that was loaded without an env."""
        self._parts: dict[str, Any] = {}
        self._begin(training.spec, training.policy, spaces_of(training.world), verbose, tensorboard_log)
        if verbose >= 1:
            print(f"{origin}\n{training.device}, {threads}, {backend_of(training.world)}'s {training.world.name}")
            if placement := placement_of(training.world):
                print(placement)

    def _begin(
        self, spec: RunSpec, policy: Policy, spaces: Spaces, verbose: int, tensorboard_log: str | Path | None
    ) -> None:
        self.spec, self.policy, self.spaces = spec, policy, spaces
        self.verbose, self.tensorboard_log = verbose, tensorboard_log
        self.device = choose_device(spec.ppo.device)
        self._generator = torch.Generator(self.device).manual_seed(spec.seed + PREDICT_SEED_OFFSET)

    def learn(
        self,
        total_timesteps: int,
        callback: Any = None,
        log_interval: int = 1,
        progress_bar: bool = False,
        reset_num_timesteps: bool = True,
        tb_log_name: str = "PPO",
    ) -> Self:
        """Train for `total_timesteps` env steps, rounded up to whole rollouts.

        `callback` is a function (or a list of them) that gets the UpdateReport of each update; False ends the training.
        Schedules run over the length of this call. With reset_num_timesteps=False the counters go on and a schedule is
        stretched over the steps so far and the new ones: a learn(100) stopped at 60 is completed by 40 more.
        Ctrl-C lets the running update finish and returns; a second one interrupts at once.
        """
        training, watching = self._need_env("learn"), watchers(callback)
        set_length(training, total_timesteps, fresh=reset_num_timesteps)
        self.spec = training.spec
        curves = curves_directory(self.tensorboard_log, tb_log_name, fresh=reset_num_timesteps)
        lines = log_interval if self.verbose >= 1 else 0
        telling = Telling(training, lines_every=lines, progress_bar=progress_bar, curves=curves)
        with GentleStop() as stop, telling:
            for report in training:
                telling.tell(report)
                answers = [watch(report) for watch in watching]
                if stop.requested or any(says_stop(answer) for answer in answers):
                    break
        if stop.requested:
            print(f"stopped after {self.num_timesteps:,} steps; the model can be saved or go on", file=sys.stderr)
        return self

    def predict(
        self,
        obs: Any,
        state: dict[str, torch.Tensor] | None = None,
        episode_start: Any = None,
        deterministic: bool = False,
        *,
        action_masks: Any = None,
    ) -> tuple[Any, dict[str, torch.Tensor] | None]:
        """The action for one observation, or for each of a batch, as the env takes it; and what to pass as `state`
        next time (None for a policy without memory)."""
        return choose(
            self.policy,
            self.spaces,
            self.spaces.look(obs, action_masks),
            memory=state,
            start=episode_start,
            generator=self._generator,
            deterministic=deterministic,
        )

    def save(self, path: str | Path) -> None:
        """Write a checkpoint into the directory `path`: weights, optimiser, statistics, counters, world. No pickle."""
        refuse_other_place(Path(path))
        parts = self._state()
        inexact = None if self.training is None else self.training.world.inexact
        mine = {"spec": self.spec.to_json(), "spaces": self.spaces.to_tree()}
        meta = {"exact": inexact is None, "why": inexact or ""}
        save_checkpoint(Path(path), int(parts["learner"]["updates"]), {**parts, "facade": mine}, meta=meta)

    @classmethod
    def load(
        cls,
        path: str | Path,
        env: EnvLike | VecNormalize | None = None,
        *,
        policy: Policy | None = None,
        verbose: int = 0,
        tensorboard_log: str | Path | None = None,
        **settings: Any,
    ) -> Self:
        """The model in a checkpoint, a directory of checkpoints or a run, as it was, with `settings` changed.

        Without an env it can predict; with the same kind of env it goes on to the last bit. A policy with a network
        of your own inside must be built by you and passed as `policy`.
        """
        pin_threads()
        saved = read_model(Path(path))
        ppo, net, collect = split_settings(settings)
        changed = {"ppo": saved.spec.ppo.replace(**ppo), "collect": saved.spec.collect.replace(**collect)}
        if net:
            raise ConfigError(f"{', '.join(net)} shaped the saved network; only a new PPO can have another")
        model = cls.__new__(cls)
        built = policy_from_description(saved.parts["policy"]) if policy is None else own_policy(policy)
        assert built is not None
        load_weights(built, saved.parts["weights"])
        model.training, model._parts = None, saved.parts
        model._begin(replace(saved.spec, **changed), built, saved.spaces, verbose, tensorboard_log)
        built.to(model.device)
        if env is not None:
            model.set_env(env)
        return model

    def set_env(self, env: EnvLike | VecNormalize) -> None:
        """Go on in another env of the same spaces; the learner keeps all it has."""
        parts, before = self._state(), self.spec
        world = open_world(env, before.ppo.envs, before.collect.workers)
        refuse_other_spaces(self.spaces.observation, self.spaces.action, world)
        ppo = before.ppo.replace(envs=world.num_envs, rollout_steps=max(1, before.ppo.batch_size // world.num_envs))
        training = Training(replace(before, env=world.name, ppo=ppo), world=world, policy=self.policy)
        note = move_in(training, parts, came_from=before.env)
        if note and self.verbose >= 1:
            print(f"new episodes begin: {note}")
        self.training, self.spec, self.spaces = training, training.spec, spaces_of(world)
        self._parts = {}

    def get_env(self) -> World | None:
        """The world it trains in."""
        return None if self.training is None else self.training.world

    @property
    def num_timesteps(self) -> int:
        """Env steps since the counters were last set to 0."""
        return int(self._parts["collector"]["env_steps"]) if self.training is None else self.training.env_steps

    @property
    def recent_return(self) -> float | None:
        """Mean raw return of the last 100 training episodes; None before the first has ended."""
        return None if self.training is None else self.training.collector.episodes.recent()[0]

    def _state(self) -> dict[str, Any]:
        return self._parts if self.training is None else self.training.state()

    def _need_env(self, what: str) -> Training:
        if self.training is None:
            raise ConfigError(f"the model was loaded without an env, so it cannot {what}; call set_env(env) first")
        return self.training

    def __getattr__(self, name: str) -> Any:
        refuse_attribute(name)


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
    """Mean and standard deviation of the raw returns of whole episodes; or all returns and lengths.

    `seed` is 1,000,003 above the model's unless given, so that the episodes are none it trained on. In the model's own
    env, training goes on afterwards as if nothing had been.
    """
    policy, device = (model.policy, model.device) if isinstance(model, PPO) else (model, torch.device("cpu"))
    training = model.training if isinstance(model, PPO) else None
    if seed is None:
        seed = EVAL_SEED_OFFSET + (model.spec.seed if isinstance(model, PPO) else 0)
    with playground(training, env, n_eval_episodes) as world:
        if isinstance(model, PPO):
            refuse_other_spaces(model.spaces.observation, model.spaces.action, world)
        played = play(policy, world, n_eval_episodes, seed=seed, deterministic=deterministic, device=device)
    return (played.returns, played.lengths) if return_episode_rewards else (played.mean, played.std)


def make_vec_env(
    env_id: EnvLike,
    n_envs: int = 1,
    seed: int | None = None,
    *,
    env_kwargs: Mapping[str, Any] | None = None,
    wrapper_class: Wrap | None = None,
    vec_env_cls: Any = None,
    backend: Backend = "auto",
    workers: Workers = "auto",
) -> World:
    """`n_envs` streams of an env as one world.

    Where there is a vectorised world of our own for the id it is taken, and the log of "surefoot" says so;
    backend="gymnasium" gives Gymnasium's. Its envs are stepped by `workers` processes and this one, "auto" measures
    what pays; DummyVecEnv means 0. PPO seeds its world itself: `seed` only counts if you step it by hand.
    """
    wrappers = [] if wrapper_class is None else [wrapper_class]
    if vec_env_cls is SubprocVecEnv:
        single = lambda: make_world(env_id, backend="gymnasium", env_kwargs=env_kwargs, wrappers=wrappers)  # noqa: E731
        world = SubprocVecEnv([lambda: _only_env(single())] * n_envs)
    elif vec_env_cls in (None, DummyVecEnv):
        several: Workers = workers if vec_env_cls is None else 0
        world = make_world(env_id, n_envs, backend=backend, env_kwargs=env_kwargs, wrappers=wrappers, workers=several)
    else:
        raise ConfigError(
            f"vec_env_cls is {vec_env_cls!r}; surefoot.train.interop.sb3_names has DummyVecEnv and SubprocVecEnv"
        )
    if backend_of(world) == "surefoot":
        log.info("%s: our own vectorised world; backend='gymnasium' gives Gymnasium's", world.name)
    if seed is not None:
        world.reset(seed)
    return world


def _only_env(world: World) -> gym.Env[Any, Any]:
    assert isinstance(world, EnvsWorld)
    return world.envs[0]
