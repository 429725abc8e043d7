"""A rollout step by step through the policy itself; where the kernel knows the policy, it writes the rollout instead."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from surefoot.data.rollout import Rollout
from surefoot.data.rollout_builder import RolloutBuilder
from surefoot.envs.api import Arrays, Step, View
from surefoot.nets.policy import PolicyInput

if TYPE_CHECKING:
    from surefoot.train.collect.collector import Collector


@torch.no_grad()
def torch_rollout(collector: Collector, policy_version: int) -> tuple[Rollout, float]:
    """Return the next rollout, step by step through the policy itself, and the seconds spent in the world."""
    in_world, builder = 0.0, RolloutBuilder(collector.steps, collector.world.num_envs)
    episode_from = np.zeros(collector.world.num_envs, dtype=np.int64)
    context = (
        {name: x.cpu().numpy().copy() for name, x in collector.context.items()} if collector.policy.sequential else {}
    )
    collector.context = collector.policy.renew_context(collector.context)
    for t in range(collector.steps):
        seen, view, start = _seen(collector, collector.view), collector.view, collector.start
        out = collector.policy.act(seen, generator=collector.generator)
        action = out.action.cpu().numpy()
        before = time.perf_counter()
        step = collector.world.step(collector.policy.env_action(action))
        in_world += time.perf_counter() - before
        collector.env_steps += int(np.count_nonzero(step.valid))
        collector.context = out.context
        step, dropped = collector.guard.examine(step, collector.episodes)
        builder.dropped += [(int(episode_from[stream]), t, int(stream)) for stream in dropped]
        _follow(collector, step, t, builder)
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
    ahead = collector.policy.value(_seen(collector, collector.view)).cpu().numpy()
    return collector.finish(builder, policy_version, ahead, context), in_world


def _follow(collector: Collector, step: Step, t: int, builder: RolloutBuilder) -> None:
    """Count a step, ask what truncated episodes would have been worth, and move on to its view."""
    ended = step.terminated | step.truncated
    collector.episodes.count(step)
    collector.episodes.finish(step, ended)
    if step.truncated.any():
        assert step.final_obs is not None, f"{collector.world.name} cut an episode short without its last observation"
        value = collector.policy.value(
            PolicyInput(obs=_load(collector.device, step.final_obs), context=collector.context)
        )
        builder.cut(t, step.truncated, value.cpu().numpy())
    collector.start = ended | ~step.valid
    collector.view = step.view


def _seen(collector: Collector, view: View) -> PolicyInput:
    mask = None if view.action_mask is None else torch.from_numpy(view.action_mask).to(collector.device)
    start = torch.from_numpy(collector.start).to(collector.device) if collector.policy.sequential else None
    return PolicyInput(obs=_load(collector.device, view.obs), action_mask=mask, start=start, context=collector.context)


def _load(device: torch.device, obs: Arrays) -> dict[str, Tensor]:
    if device.type == "cpu":
        return {name: torch.from_numpy(x) for name, x in obs.items()}
    return {name: torch.from_numpy(x).to(device) for name, x in obs.items()}
