"""How good a policy is: whole episodes in worlds of their own, on seeds that training never saw."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from surefoot.data.seeds import seed_for
from surefoot.envs.api import View, World
from surefoot.errors import ConfigError, EnvError
from surefoot.nets.policy import Policy, PolicyInput
from surefoot.train.collect.episodes import episode_continues, return_of, success_of
from surefoot.train.collect.kernel_rollout import kernel_actions, kernel_actor

EVAL_SEED_OFFSET = 1_000_003
"""Added to a run's seed for its evaluations, so that they never meet the episodes it trained on."""
LONGEST_EPISODE = 100_000
"""Steps after which an evaluation no longer waits for an episode to end; a policy that goes in circles never ends one."""


@dataclass(frozen=True, slots=True)
class Played:
    """The episodes of one evaluation; raw returns."""

    returns: list[float]
    lengths: list[int]
    successes: list[bool | None]

    @property
    def mean(self) -> float:
        """Mean return."""
        return float(np.mean(self.returns))

    @property
    def std(self) -> float:
        """Population standard deviation of the returns."""
        return float(np.std(self.returns))


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
    """Play `episodes` whole episodes, or fewer if `stop` says so.

    Each stream plays its share, fixed beforehand: to take whichever end first would favour the short ones. Likeliest
    actions come from the kernel where it knows the policy, unless `path` is "torch".
    """
    if episodes < 1:
        raise ConfigError(f"episodes is {episodes}; at least one must be played")
    streams = world.num_envs
    quota = np.full(streams, episodes // streams) + (np.arange(streams) < episodes % streams)
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
                played.returns.append(return_of(step, stream, returns[stream]))
                played.lengths.append(int(lengths[stream]))
                success = success_of(step, stream)
                played.successes.append(None if success is None else bool(success))
            returns[stream], lengths[stream] = 0.0, 0
        if lengths.max() >= LONGEST_EPISODE:
            raise EnvError(
                f"{world.name} did not end an episode within {LONGEST_EPISODE:,} steps; give it a time limit"
            )
    return played


_Choose = Callable[[View, np.ndarray], np.ndarray]
"""From what is seen and where episodes begin to what the world takes."""


def chooser(
    policy: Policy, streams: int, *, seed: int, deterministic: bool, device: torch.device, path: str = "auto"
) -> _Choose:
    """What acts: the kernel for likeliest actions where it knows the policy, unless `path` is "torch", else torch."""
    actor = kernel_actor(policy, seed) if deterministic and path != "torch" else None
    if actor is not None:
        actor.net.refresh()
        return lambda view, start: kernel_actions(actor, view, actor.rng, deterministic=True)
    generator = torch.Generator(device).manual_seed(seed_for("play", seed))
    context = policy.initial_context(streams)

    def choose(view: View, start: np.ndarray) -> np.ndarray:
        nonlocal context
        seen = PolicyInput(
            obs={name: torch.from_numpy(x).to(device) for name, x in view.obs.items()},
            action_mask=None if view.action_mask is None else torch.from_numpy(view.action_mask).to(device),
            start=torch.from_numpy(start).to(device),
            context=context,
        )
        out = policy.act(seen, generator=generator, deterministic=deterministic)
        context = out.context
        return policy.env_action(out.action.cpu().numpy())

    return choose
