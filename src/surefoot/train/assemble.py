"""From what people write, or from a saved model, to a `Training`."""

from __future__ import annotations

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

EVAL_STREAMS = 10
SHORTEST_STEPS = 16
"""Fewest steps per env that following the preset's rollout size may lead to: below that GAE sees little."""


@runtime_checkable
class _AnyPolicy(Policy, Protocol):
    """`Policy`, so that one can be told from another module at run time."""


def assemble(
    policy: Any, env: EnvLike | VecNormalize, settings: Mapping[str, Any], preset_name: str | None
) -> tuple[Training, str]:
    """A training of `policy` in `env`, and a sentence that says where its settings come from."""
    refuse_replaced(settings)
    own = own_policy(policy)
    tagged = env if isinstance(env, VecNormalize) else None
    if tagged is not None:
        settings = {**tagged.settings, **settings}
    if isinstance(policy, str):
        # What the policy's name stands for, where the settings do not say otherwise.
        said = split_settings(settings)[1]
        settings = {**{name: value for name, value in POLICIES[policy].items() if name not in said}, **settings}
    ppo, net, collect = split_settings(settings)
    if own is not None and net:
        raise ConfigError(f"{', '.join(net)} belong to the network, which is built already; set them where it is built")
    world = make_world(_env_of(env), workers=0 if _can_be_made_again(env) else collect.get("workers", 0))
    spec = make_spec(world.name, world.action, preset_name=preset_name, settings=settings)
    fixed = world.num_envs if not _can_be_made_again(env) else None
    if fixed is not None and ppo.get("envs", fixed) != fixed:
        raise ConfigError(f"n_envs is {ppo['envs']} but the env that was given has {fixed}; leave n_envs away")
    spec = replace(spec, ppo=keep_rollout(spec.ppo, set(ppo), spec.preset, fixed))
    if tagged is not None and tagged.gamma not in (None, spec.ppo.gamma):
        raise ConfigError(
            f"VecNormalize has gamma={tagged.gamma} and PPO gamma={spec.ppo.gamma}; rewards must be scaled with the "
            "learner's own: leave it out of VecNormalize"
        )
    if own is not None:
        spec = replace(spec, net=own.config if isinstance(own, ActorCritic) else NetConfig())
        if isinstance(own, ActorCritic):
            refuse_other_spaces(own.observation, own.action, world)
    if _can_be_made_again(env) and spec.ppo.envs > 1:
        world.close()
        world = make_world(_env_of(env), spec.ppo.envs, workers=spec.collect.workers)
    if world.num_envs != spec.ppo.envs:  # n_envs copies of an env with several agents are more streams than that
        spec = with_streams(spec, settings, world.num_envs)
    from_preset = [f"{name}={getattr(spec.ppo, name)}" for name in preset(spec.preset).ppo if name not in ppo]
    values = f": {' '.join(from_preset)}" if from_preset else ""
    origin = f"{spec.env}: what was left unset is from the preset {spec.preset!r}{values}"
    return Training(spec, world=world, policy=own), origin


def own_policy(policy: Any) -> Policy | None:
    """A policy the user built; None for a name, which stands for one that is built here."""
    if isinstance(policy, str):
        if policy not in POLICIES:
            raise ConfigError(f"policy is {policy!r}; it is one of {', '.join(POLICIES)}, or a policy of your own")
        return None
    if isinstance(policy, type):
        raise ConfigError(f"policy is the class {policy.__name__}; build one and pass it, or say 'MlpPolicy'")
    if isinstance(policy, _AnyPolicy):
        return policy
    kind = type(policy).__name__
    if isinstance(policy, torch.nn.Module):
        raise PolicyError(
            f"{kind} is a network but not yet a policy; ActorCritic(world.observation, world.action, torso=…) or "
            "network=… makes one of it"
        )
    raise ConfigError(f"policy is a {kind}; it is one of {', '.join(POLICIES)}, or a policy of your own")


def keep_rollout(ppo: PPOConfig, said: set[str], preset_name: str, fixed_envs: int | None) -> PPOConfig:
    """`ppo` with steps and envs that fit each other.

    A preset that names envs means a rollout of steps · envs. Where only one of the two is said (or the env that was
    given has its number already), the other follows, so that the rollout keeps its size.
    """
    meant = preset(preset_name).ppo
    if fixed_envs is not None:
        ppo, said = ppo.replace(envs=fixed_envs), said | {"envs"}
    if "envs" not in meant or len(said & {"rollout_steps", "envs"}) != 1:
        return ppo
    size = PPOConfig(**meant).batch_size
    if "envs" in said:
        return ppo.replace(rollout_steps=max(min(SHORTEST_STEPS, meant["rollout_steps"]), round(size / ppo.envs)))
    return ppo.replace(envs=max(1, round(size / ppo.rollout_steps)))


def with_streams(spec: RunSpec, settings: Mapping[str, Any], streams: int) -> RunSpec:
    """A spec for copies of an env with several agents: more streams than were said, in a rollout of the same size."""
    said = set(split_settings(settings)[0]) - {"envs"}
    return replace(spec, ppo=keep_rollout(spec.ppo, said, spec.preset, streams))


def _can_be_made_again(env: Any) -> bool:
    return isinstance(env, str) or (callable(env) and not isinstance(env, gym.Env))


def _env_of(env: EnvLike | VecNormalize) -> EnvLike:
    return env.world if isinstance(env, VecNormalize) else env


def set_length(training: Training, total_timesteps: int, *, fresh: bool) -> None:
    """Where training ends, counted from here, and with it where its schedules do."""
    try:
        total = whole_number(total_timesteps)
    except (TypeError, ValueError, OverflowError):
        total = 0
    if total < 1:
        raise ConfigError(f"total_timesteps is {total_timesteps!r}; it must be a whole number, at least 1")
    if fresh:
        training.collector.env_steps = training.learner.updates = 0
    spec = replace(training.spec, total_steps=training.env_steps + total)
    training.spec = spec


def open_world(env: EnvLike | VecNormalize, envs: int, workers: Workers = 0) -> World:
    """`env` as a world: with `envs` streams and `workers` if it can be built, else with those it has."""
    if not _can_be_made_again(env):
        return make_world(_env_of(env))
    return make_streams(_env_of(env), envs, workers=workers)


@contextmanager
def playground(training: Training | None, env: EnvLike | VecNormalize, episodes: int) -> Generator[World]:
    """A world to play `episodes` in: made for it and closed again, or the one that was given.

    Where that is the world of `training`, its streams go on afterwards where they were.
    """
    plain = _env_of(env)
    own = [] if training is None else [training.world]
    own += [env for world in own if isinstance(world, EnvsWorld) for env in world.envs]
    if training is not None and any(plain is each for each in own):
        before = training.collector_state()
        try:
            yield training.world
        finally:
            _put_back(training, before)
        return
    world = open_world(plain, max(1, min(episodes, EVAL_STREAMS)))
    try:
        yield world
    finally:
        if _can_be_made_again(plain):
            world.close()


def _put_back(training: Training, before: dict[str, Any]) -> None:
    """The collector's streams as they were; in a world that cannot be put back they begin new episodes."""
    collector, streams = training.collector, training.world.num_envs
    if training.world.inexact is None:
        collector.set_state(before)
        return
    collector.view = training.world.set_state(before["world"])
    collector.start, collector.guard.quarantined = np.ones(streams, dtype=bool), np.zeros(streams, dtype=bool)
    collector.context = training.policy.initial_context(streams)
    collector.scaler.running = np.zeros(streams)
    for stream in range(streams):
        collector.episodes.forget(stream)


def move_in(training: Training, parts: Mapping[str, Any], *, came_from: str) -> str | None:
    """Go on from a checkpoint's parts; a sentence if the streams begin new episodes, as they were of another world."""
    saved, own = parts["collector"], training.collector.state()
    before, now = len(saved["start"]), training.world.num_envs
    if before == now and came_from == training.world.name and set(saved["world"]) == set(own["world"]):
        training.set_state(dict(parts))
        return training.world.inexact
    # The saved counters and statistics go on with the streams of this world.
    streams = {name: own[name] for name in ("world", "start", "context", "quarantined")}
    running = {name: own["episodes"][name] for name in ("returns", "lengths")}
    streams["episodes"] = {**saved["episodes"], **running}
    streams["scaler"] = {**saved["scaler"], "running": own["scaler"]["running"]}
    training.set_state({**parts, "collector": {**saved, **streams}})
    return f"the model came from {before} streams of {came_from} and goes on in {now} of {training.world.name}"


@dataclass(frozen=True, slots=True)
class SavedModel:
    """What a checkpoint says about a model."""

    spec: RunSpec
    spaces: Spaces
    parts: dict[str, Any]


def refuse_other_place(path: Path) -> None:
    """Raise if `path` is a file, or a directory that holds other things than checkpoints."""
    if path.is_file():
        raise CheckpointError(f"{path} is a file; save(…) writes a directory, so give it another name")
    if path.is_dir() and any(path.iterdir()) and not newest_first(path):
        raise CheckpointError(f"{path} holds other things than checkpoints; save into a directory of its own")


def read_model(path: Path) -> SavedModel:
    """From a checkpoint, the directory of several, or a run; the newest whole one."""
    if path.suffix == ".zip" or path.with_name(path.name + ".zip").is_file():
        raise CheckpointIncompatible(
            f"{path} is a file, as Stable-Baselines3 writes them; what is loaded here is a directory from model.save(…) "
            "or a run, as a pickle could run code"
        )
    if path.is_file():
        raise CheckpointIncompatible(
            f"{path} is a file; what is loaded here is a directory from model.save(…) or a run"
        )
    run = RunDir(path)
    checkpoint = load_checkpoint(run.checkpoints if run.header.is_file() else path)
    parts = checkpoint.parts
    try:
        if "facade" in parts:
            mine = parts["facade"]
            return SavedModel(RunSpec.from_json(mine["spec"]), Spaces.from_tree(mine["spaces"]), parts)
        run = RunDir(checkpoint.path.resolve().parent.parent)
        if not run.header.is_file():
            raise CheckpointIncompatible(
                f"{checkpoint.path} does not say how it was trained; give one from model.save(…) or a run directory"
            )
        return SavedModel(RunSpec.from_json(run.read_spec()), _described_spaces(parts["policy"]), parts)
    except (KeyError, TypeError, AttributeError) as why:
        raise CheckpointError(f"{checkpoint.path} is not a model's checkpoint: {why!r}") from why


def _described_spaces(policy: Mapping[str, Any]) -> Spaces:
    """From the policy's own description, where the env's words for its spaces were not kept."""
    if policy.get("kind") != "actor_critic":
        raise CheckpointIncompatible(
            f"a policy of kind {policy.get('kind')!r} says nothing of its spaces; save it with PPO.save"
        )
    observation: Any = {name: space_from_json(spec) for name, spec in policy["observation"].items()}
    return Spaces(observation_to_gym(observation), action_to_gym(space_from_json(policy["action"])))
