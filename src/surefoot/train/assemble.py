"""Builds a `Training` from arguments in SB3's style, or from a saved model."""

from __future__ import annotations

import logging
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import gymnasium as gym
import numpy as np
import torch

from surefoot.data.kinds import whole_number
from surefoot.data.spaces import space_from_json
from surefoot.envs.api import World
from surefoot.envs.gym.single_envs import EnvsWorld
from surefoot.envs.make import EnvLike, make_streams, make_world
from surefoot.envs.register import action_to_gym, observation_to_gym
from surefoot.envs.workers.placement import Workers
from surefoot.errors import CheckpointError, CheckpointIncompatible, ConfigError, PolicyError
from surefoot.learn.checkpoint.checkpoint import load_checkpoint, newest_first
from surefoot.learn.config import PPOConfig
from surefoot.learn.presets import preset
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import POLICIES, NetConfig
from surefoot.nets.policy import Policy
from surefoot.train.config import split_settings
from surefoot.train.interop.sb3_names import VecNormalize, refuse_replaced
from surefoot.train.predict import Spaces, refuse_other_spaces
from surefoot.train.rundir.rundir import RunDir
from surefoot.train.spec import RunSpec, make_spec
from surefoot.train.training import Training

log = logging.getLogger("surefoot")

# Envs that an evaluation steps side by side: as many as the default number of episodes, so that each plays one.
EVAL_STREAMS = 10
# Fewest steps per env when they follow from the preset's rollout size: in shorter rollouts GAE has little to sum.
SHORTEST_STEPS = 16


@runtime_checkable
class _AnyPolicy(Policy, Protocol):
    """`Policy` as a protocol that can be checked at run time."""


def assemble(
    policy: Any, env: EnvLike | VecNormalize, settings: Mapping[str, Any], preset_name: str | None
) -> tuple[Training, str]:
    """Return a training of `policy` in `env`, and a sentence about the origin of its settings."""
    refuse_replaced(settings)
    custom = own_policy(policy)
    tagged = env if isinstance(env, VecNormalize) else None
    if tagged is not None:
        settings = {**tagged.settings, **settings}
    if isinstance(policy, str):
        # The settings that the policy's name stands for; explicit settings win.
        explicit = split_settings(settings)[1]
        settings = {**{name: value for name, value in POLICIES[policy].items() if name not in explicit}, **settings}
    ppo, net, collect = split_settings(settings)
    if custom is not None and net:
        raise ConfigError(
            f"{', '.join(net)} belong to the network, which is built already; set them where you build it"
        )
    world = make_world(_env_of(env), workers=0 if _can_be_made_again(env) else collect.get("workers", 0))
    spec = make_spec(world.name, world.action, preset_name=preset_name, settings=settings)
    # An env object that was passed cannot be copied, so its number of streams is fixed.
    fixed = world.num_envs if not _can_be_made_again(env) else None
    if fixed is not None and ppo.get("envs", fixed) != fixed:
        raise ConfigError(f"n_envs is {ppo['envs']} but the env that you passed has {fixed}; leave n_envs out")
    sized = keep_rollout(spec.ppo, set(ppo), spec.preset, fixed)
    if fixed is None and sized != spec.ppo:
        log.warning(_sizes_sentence(sized, set(ppo)))
    spec = replace(spec, ppo=sized)
    if custom is None and spec.net.gsde and "gsde" not in net and (ppo or net):
        log.warning("the preset %r uses gSDE; pass use_sde=False to switch it off", spec.preset)
    # VecNormalize scales rewards by the deviation of discounted returns, so both discounts must agree.
    if tagged is not None and tagged.gamma not in (None, spec.ppo.gamma):
        raise ConfigError(
            f"VecNormalize has gamma={tagged.gamma} and PPO gamma={spec.ppo.gamma}; they must be equal: leave gamma "
            "out of VecNormalize"
        )
    if custom is not None:
        spec = replace(spec, net=custom.config if isinstance(custom, ActorCritic) else NetConfig())
        if isinstance(custom, ActorCritic):
            refuse_other_spaces(custom.observation, custom.action, world)
    if _can_be_made_again(env) and spec.ppo.envs > 1:
        world.close()
        world = make_world(_env_of(env), spec.ppo.envs, workers=spec.collect.workers)
    if world.num_envs != spec.ppo.envs:  # an env with several agents has more streams than copies
        spec = with_streams(spec, settings, world.num_envs)
    chosen = preset(spec.preset)
    from_preset = [f"{name}={getattr(spec.ppo, name)}" for name in chosen.ppo if name not in ppo]
    if custom is None:
        from_preset += [f"{name}={getattr(spec.net, name)}" for name in chosen.net if name not in net]
    values = f": {' '.join(from_preset)}" if from_preset else ""
    origin = f"{spec.env}: settings that you left out are from the preset {spec.preset!r}{values}"
    return Training(spec, world=world, policy=custom), origin


def own_policy(policy: Any) -> Policy | None:
    """Return a policy that the user built, or None for a name. Raise if it is neither."""
    if isinstance(policy, str):
        if policy not in POLICIES:
            raise ConfigError(
                f"policy is {policy!r}; it must be one of {', '.join(POLICIES)}, or a policy that you built"
            )
        return None
    if isinstance(policy, type):
        raise ConfigError(f"policy is the class {policy.__name__}; pass an instance of it, or 'MlpPolicy'")
    if isinstance(policy, _AnyPolicy):
        return policy
    kind = type(policy).__name__
    if isinstance(policy, torch.nn.Module):
        raise PolicyError(
            f"{kind} is a network but not a policy; pass it to ActorCritic(world.observation, world.action, torso=…) "
            "or network=…"
        )
    raise ConfigError(f"policy is a {kind}; it must be one of {', '.join(POLICIES)}, or a policy that you built")


def keep_rollout(ppo: PPOConfig, explicit: set[str], preset_name: str, fixed_envs: int | None) -> PPOConfig:
    """Return `ppo` with the rollout size of the preset, if exactly one of rollout_steps and envs is set explicitly.

    `fixed_envs` is the number of streams of an env that was passed; it counts as explicit.
    """
    defaults = preset(preset_name).ppo
    if fixed_envs is not None:
        ppo, explicit = ppo.replace(envs=fixed_envs), explicit | {"envs"}
    if "envs" not in defaults or len(explicit & {"rollout_steps", "envs"}) != 1:
        return ppo
    size = PPOConfig(**defaults).batch_size
    if "envs" in explicit:
        return ppo.replace(rollout_steps=max(min(SHORTEST_STEPS, defaults["rollout_steps"]), round(size / ppo.envs)))
    return ppo.replace(envs=max(1, round(size / ppo.rollout_steps)))


def _sizes_sentence(ppo: PPOConfig, explicit: set[str]) -> str:
    size = f"a rollout of {ppo.batch_size:,} steps, as in the preset"
    if "envs" in explicit:
        return f"n_envs={ppo.envs} and {size}: n_steps is {ppo.rollout_steps}; pass n_steps to choose it"
    return f"n_steps={ppo.rollout_steps} and {size}: n_envs is {ppo.envs}; pass n_envs to choose it"


def differences_from_sb3(spec: RunSpec) -> str:
    """Return a sentence with the settings that differ from SB3's defaults."""
    theirs = PPOConfig()
    names = [name for name in spec.ppo.to_json() if getattr(spec.ppo, name) != getattr(theirs, name)]
    different = [f"{name}={getattr(spec.ppo, name)}" for name in names] + ["use_sde=True"] * spec.net.gsde
    return f"different from SB3's defaults: {' '.join(different) or 'nothing'}"


def with_streams(spec: RunSpec, settings: Mapping[str, Any], streams: int) -> RunSpec:
    """Return the spec with `streams` envs and the same rollout size, for an env with several agents."""
    explicit = set(split_settings(settings)[0]) - {"envs"}
    return replace(spec, ppo=keep_rollout(spec.ppo, explicit, spec.preset, streams))


def _can_be_made_again(env: Any) -> bool:
    return isinstance(env, str) or (callable(env) and not isinstance(env, gym.Env))


def _env_of(env: EnvLike | VecNormalize) -> EnvLike:
    return env.world if isinstance(env, VecNormalize) else env


def set_length(training: Training, total_timesteps: int, *, fresh: bool) -> None:
    """Set the end of a training, and with it of its schedules, counted from the current step."""
    try:
        total = whole_number(total_timesteps)
    except (TypeError, ValueError, OverflowError):
        total = 0
    if total < 1:
        raise ConfigError(f"total_timesteps is {total_timesteps!r}; it must be a whole number, at least 1")
    # As SB3's reset_num_timesteps: counters restart, weights and optimizer do not.
    if fresh:
        training.collector.env_steps = training.learner.updates = 0
    training.spec = replace(training.spec, total_steps=training.env_steps + total)


def open_world(env: EnvLike | VecNormalize, envs: int, workers: Workers = 0) -> World:
    """Return `env` as a world, with `envs` streams and `workers` if it is built here."""
    if not _can_be_made_again(env):
        return make_world(_env_of(env))
    return make_streams(_env_of(env), envs, workers=workers)


@contextmanager
def evaluation_world(training: Training | None, env: EnvLike | VecNormalize, episodes: int) -> Generator[World]:
    """Yield a world for `episodes` episodes: one that is built and closed again, or the one that was passed.

    If that is the world of `training`, its streams continue afterwards where they were.
    """
    plain = _env_of(env)
    training_envs = [] if training is None else [training.world]
    training_envs += [env for world in training_envs if isinstance(world, EnvsWorld) for env in world.envs]
    if training is not None and any(plain is each for each in training_envs):
        before = training.collector_state()
        try:
            yield training.world
        finally:
            collector, streams = training.collector, training.world.num_envs
            if training.world.inexact is None:
                collector.set_state(before)
            else:
                # The world cannot be put back into its episodes, so all streams start new ones.
                collector.view = training.world.set_state(before["world"])
                collector.guard.quarantined = np.zeros(streams, dtype=bool)
                collector.context = training.policy.initial_context(streams)
                collector.begin_new_episodes(np.ones(streams, dtype=bool))
        return
    world = open_world(plain, max(1, min(episodes, EVAL_STREAMS)))
    try:
        yield world
    finally:
        if _can_be_made_again(plain):
            world.close()


def move_in(training: Training, parts: Mapping[str, Any], *, came_from: str) -> str | None:
    """Continue from a checkpoint's parts. Return why the streams start new episodes, or None if they continue."""
    saved, current = parts["collector"], training.collector.state()
    before, now = len(saved["start"]), training.world.num_envs
    if before == now and came_from == training.world.name and set(saved["world"]) == set(current["world"]):
        training.set_state(dict(parts))
        return training.world.inexact
    # Counters and statistics are those of the checkpoint, streams those of this world.
    streams = {name: current[name] for name in ("world", "start", "context", "quarantined")}
    running = {name: current["episodes"][name] for name in ("returns", "lengths")}
    streams["episodes"] = {**saved["episodes"], **running}
    streams["scaler"] = {**saved["scaler"], "running": current["scaler"]["running"]}
    training.set_state({**parts, "collector": {**saved, **streams}})
    return f"the model was trained in {before} streams of {came_from} and continues in {now} of {training.world.name}"


@dataclass(frozen=True, slots=True)
class SavedModel:
    """A model as a checkpoint describes it."""

    spec: RunSpec
    spaces: Spaces
    parts: dict[str, Any]


def refuse_other_place(path: Path) -> None:
    """Raise `CheckpointError` if `path` is a file, or a directory with other files than checkpoints."""
    if path.is_file():
        raise CheckpointError(f"{path} is a file, but save(…) writes a directory; choose another name")
    if path.is_dir() and any(path.iterdir()) and not newest_first(path):
        raise CheckpointError(f"{path} contains other files than checkpoints; save into an empty directory")


def read_model(path: Path) -> SavedModel:
    """Read the newest complete checkpoint of a run or of a directory that `model.save` wrote."""
    if path.suffix == ".zip" or path.with_name(path.name + ".zip").is_file():
        raise CheckpointIncompatible(
            f"{path} is a file of Stable-Baselines3, whose pickles could run code; pass a directory from model.save(…) "
            "or a run, or convert it with `surefoot import sb3`"
        )
    if path.is_file():
        raise CheckpointIncompatible(f"{path} is a file; pass a directory from model.save(…) or a run")
    run = RunDir(path)
    checkpoint = load_checkpoint(run.checkpoints if run.header.is_file() else path)
    parts = checkpoint.parts
    try:
        if "facade" in parts:
            model = parts["facade"]
            return SavedModel(RunSpec.from_json(model["spec"]), Spaces.from_tree(model["spaces"]), parts)
        run = RunDir(checkpoint.path.resolve().parent.parent)
        if not run.header.is_file():
            raise CheckpointIncompatible(
                f"{checkpoint.path} has no settings with it; pass a directory from model.save(…) or a run"
            )
        # A run does not store the env's own spaces, so they are rebuilt from the policy's description.
        policy = parts["policy"]
        if policy.get("kind") != "actor_critic":
            raise CheckpointIncompatible(
                f"a policy of kind {policy.get('kind')!r} does not describe its spaces; save it with PPO.save"
            )
        observation: Any = {name: space_from_json(spec) for name, spec in policy["observation"].items()}
        spaces = Spaces(observation_to_gym(observation), action_to_gym(space_from_json(policy["action"])))
        return SavedModel(RunSpec.from_json(run.read_spec()), spaces, parts)
    except (KeyError, TypeError, AttributeError) as why:
        raise CheckpointError(f"{checkpoint.path} is not a model's checkpoint: {why!r}") from why
