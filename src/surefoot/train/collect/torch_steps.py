"""Collecting a rollout with torch: the policy acts, the world steps, and every step is written down."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from surefoot.data.rollout_builder import RolloutBuilder
from surefoot.envs.api import Arrays, Step
from surefoot.envs.declared import declared_step
from surefoot.nets.policy import PolicyInput

if TYPE_CHECKING:
    from surefoot.train.collect.collector import Collector


class TorchSteps(NamedTuple):
    """The steps of one rollout."""

    builder: RolloutBuilder
    ahead: np.ndarray
    """[N]: the values after the last step."""
    context: Arrays
    """The memory at the first step: an update of a sequential policy starts from it."""
    seconds_in_world: float


@torch.no_grad()
def collect_with_torch(collector: Collector) -> TorchSteps:
    """Take `collector.steps` steps; the collector moves on."""
    policy, world = collector.policy, collector.world
    in_world, builder = 0.0, RolloutBuilder(collector.steps, world.num_envs)
    episode_from = np.zeros(world.num_envs, dtype=np.int64)
    context = collector.context_arrays()
    collector.context = policy.renew_context(collector.context)
    for t in range(collector.steps):
        view, start = collector.view, collector.start
        out = policy.act(_policy_input(collector), generator=collector.generator)
        action = out.action.cpu().numpy()
        before = time.perf_counter()
        step = world.step(policy.env_action(action))
        in_world += time.perf_counter() - before
        step = declared_step(world, step)
        collector.env_steps += int(np.count_nonzero(step.valid))
        collector.context = out.context
        step, dropped = collector.guard.examine(step, collector.episodes)
        builder.dropped += [(int(episode_from[stream]), t, int(stream)) for stream in dropped]
        _advance(collector, step, t, builder)
        episode_from[collector.start] = t + 1
        builder.add(
            {
                **{f"obs.{name}": x for name, x in view.obs.items()},
                **({} if view.action_mask is None else {"action_mask": view.action_mask}),
                "action": action,
                "log_prob": out.log_prob.cpu().numpy(),
                "value": out.value.cpu().numpy(),
                "reward": step.reward,
                "terminated": step.terminated,
                "truncated": step.truncated,
                "start": start,
                "valid": step.valid,
            }
        )
    ahead = policy.value(_policy_input(collector)).cpu().numpy()
    return TorchSteps(builder, ahead, context, in_world)


def _policy_input(collector: Collector) -> PolicyInput:
    start, view = collector.start if collector.policy.sequential else None, collector.view
    return PolicyInput.from_arrays(view.obs, view.action_mask, start, collector.context, collector.device)


def _advance(collector: Collector, step: Step, t: int, builder: RolloutBuilder) -> None:
    """Count a step and move on to its view; a truncated episode is bootstrapped from its last observation."""
    ended = step.terminated | step.truncated
    collector.episodes.count(step)
    collector.episodes.finish(step, ended)
    if step.truncated.any():
        assert step.final_obs is not None  # `declared_step` has seen to it
        inputs = PolicyInput.from_arrays(step.final_obs, context=collector.context, device=collector.device)
        builder.cut(t, step.truncated, collector.policy.value(inputs).cpu().numpy())
    collector.start = ended | ~step.valid
    collector.view = step.view
