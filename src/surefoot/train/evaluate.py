"""Evaluation: complete episodes in separate worlds, on seeds that training never uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch

from surefoot.data.seeds import seed_for
from surefoot.envs.api import View, World
from surefoot.envs.builtin.native import NativeWorld
from surefoot.errors import ConfigError, EnvError
from surefoot.nets.policy import Policy, PolicyInput
from surefoot.train.collect.episodes import EpisodeLog, episode_continues, return_of, success_of
from surefoot.train.collect.kernel_act import kernel_act
from surefoot.train.collect.kernel_rollout import KernelActor, KernelRollout, kernel_actor

# Added to a run's seed, so that evaluations never play the episodes it trained on.
EVAL_SEED_OFFSET = 1_000_003
# An evaluation gives up after this many steps: a policy that moves in circles never ends an episode. Longer than any
# episode of the benchmarks, whose longest are Atari's 27,000 steps.
LONGEST_EPISODE = 100_000


@dataclass(frozen=True, slots=True)
class Played:
    """The episodes of one evaluation; raw returns."""

    returns: list[float]
    lengths: list[int]
    successes: list[bool | None]

    @property
    def mean(self) -> float:
        return float(np.mean(self.returns))

    @property
    def std(self) -> float:
        """Population standard deviation of the returns."""
        return float(np.std(self.returns))

    def add(self, return_: float, length: int, success: float | None) -> None:
        self.returns.append(return_)
        self.lengths.append(length)
        self.successes.append(None if success is None else bool(success))


@torch.no_grad()
def play(
    policy: Policy,
    world: World,
    episodes: int,
    *,
    seed: int,
    deterministic: bool = True,
    device: str | torch.device = "cpu",
    stop: Callable[[], bool] = lambda: False,
    path: str = "auto",
) -> Played:
    """Play `episodes` complete episodes, or fewer if `stop` returns True.

    Each stream plays a fixed share: counting the first that end would favour short episodes. Most likely actions come from
    the kernel if it supports the policy, unless `path` is "torch".
    """
    streams = world.num_envs
    quota = episodes_per_stream(episodes, streams)
    if deterministic and path != "torch" and isinstance(world, NativeWorld):
        actor = kernel_actor(policy, seed)
        if actor is not None:
            return _play_native(actor, world, quota, seed, stop)
    choose = chooser(policy, streams, seed=seed, deterministic=deterministic, device=torch.device(device), path=path)
    view, start = world.reset(seed), np.ones(streams, dtype=bool)
    returns, lengths = np.zeros(streams), np.zeros(streams, dtype=np.int64)
    played = Played([], [], [])
    while quota.any() and not stop():
        step = world.step(choose(view, start))
        view = step.view
        returns = np.where(step.valid, returns + step.reward, 0.0)
        lengths = np.where(step.valid, lengths + 1, 0)
        ended = step.terminated | step.truncated
        start = ended | ~step.valid
        for stream in map(int, np.flatnonzero(ended)):
            if episode_continues(step, stream):
                continue
            if quota[stream]:
                quota[stream] -= 1
                played.add(return_of(step, stream, returns[stream]), int(lengths[stream]), success_of(step, stream))
            returns[stream], lengths[stream] = 0.0, 0
        refuse_endless(world, lengths)
    return played


# Steps per call of the kernel: a fraction of a millisecond, and few to throw away after the last episode; none of a task
# whose episodes have 200 or 500 steps.
_STEPS_PER_CALL = 50


def _play_native(
    actor: KernelActor, world: NativeWorld, quota: np.ndarray, seed: int, stop: Callable[[], bool]
) -> Played:
    """Play a native world in the kernel, many steps per call; the episodes are those of the loop in `play`."""
    view, start = world.reset(seed), np.ones(world.num_envs, dtype=bool)
    context = _arrays(actor.policy.initial_context(world.num_envs))
    rollout = KernelRollout(actor, world, _STEPS_PER_CALL, masked=False, context=context)
    episodes, played = EpisodeLog(world.num_envs), Played([], [], [])
    while quota.any() and not stop():
        view = rollout.collect_native(world, view, start, episodes, deterministic=True)
        for episode in episodes.take_fresh():
            if quota[episode.stream]:
                quota[episode.stream] -= 1
                played.add(episode.return_, episode.length, None)
        refuse_endless(world, episodes.lengths)
    return played


def episodes_per_stream(episodes: int, streams: int) -> np.ndarray:
    """Return the number of episodes that each stream plays. Taking the first to finish would prefer short episodes."""
    if episodes < 1:
        raise ConfigError(f"episodes is {episodes}; it must be at least 1")
    return np.full(streams, episodes // streams) + (np.arange(streams) < episodes % streams)


def refuse_endless(world: World, lengths: np.ndarray) -> None:
    """Raise `EnvError` if an episode runs for `LONGEST_EPISODE` steps."""
    if lengths.max() >= LONGEST_EPISODE:
        raise EnvError(f"{world.name} did not end an episode within {LONGEST_EPISODE:,} steps; set a time limit")


def _arrays(context: Mapping[str, torch.Tensor]) -> dict[str, np.ndarray]:
    return {name: x.cpu().numpy() for name, x in context.items()}


_Choose = Callable[[View, np.ndarray], np.ndarray]
"""(view, [N] where episodes start) → actions as the world takes them."""


def chooser(
    policy: Policy, streams: int, *, seed: int, deterministic: bool, device: torch.device, path: str = "auto"
) -> _Choose:
    """Return a function that acts: by the kernel for most likely actions if it can, unless `path` is "torch"; else by torch."""
    actor = kernel_actor(policy, seed) if deterministic and path != "torch" else None
    if actor is not None:
        memory = _arrays(policy.initial_context(streams))

        def choose_in_kernel(view: View, start: np.ndarray) -> np.ndarray:
            return kernel_act(
                actor, view, actor.rng, deterministic=True, start=np.ascontiguousarray(start), context=memory
            ).env_action

        return choose_in_kernel
    generator = torch.Generator(device).manual_seed(seed_for("play", seed))
    context = policy.initial_context(streams)

    def choose(view: View, start: np.ndarray) -> np.ndarray:
        nonlocal context
        inputs = PolicyInput.from_arrays(view.obs, view.action_mask, start, context, device)
        out = policy.act(inputs, generator=generator, deterministic=deterministic)
        context = out.context
        return policy.env_action(out.action.cpu().numpy())

    return choose
