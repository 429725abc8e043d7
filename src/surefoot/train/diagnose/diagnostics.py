"""Statistics of rollouts and updates for the doctor. They do not influence training.

`measure` returns stats of a rollout before it is learned from, `weight_changes` those of the update after it.
"""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from gymnasium.envs.registration import registry
from torch import Tensor, nn

from surefoot.data.rollout import Rollout
from surefoot.data.spaces import ActionSpace, Box
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.policy import Policy
from surefoot.train.diagnose.environment_tests import EnvironmentMonitor
from surefoot.train.diagnose.rollout_checks import rollout_checks

# These limits keep the measurements below 0.5 % of the training time: steps of a rollout that are examined, numbers of an
# observation part up to which it is examined (images are scaled anyway), updates between two measurements, and parameters
# of the largest policy whose weights are copied.
ROWS, WIDEST, EVERY, LARGEST = 256, 4096, 64, 1_000_000
ACTIVATIONS = (nn.ReLU, nn.Tanh, nn.ELU, nn.GELU, nn.SiLU, nn.LeakyReLU)
# A unit is dormant if its mean output is below this share of its layer's (the τ of Sokar et al. 2023). A higher value
# also counts units that are rarely active, a lower one only dead units.
DORMANT = 0.025


class Diagnostics:
    """Measures rollouts, and how far each update moves the weights."""

    def __init__(self, policy: Policy, action: ActionSpace, env: str = "") -> None:
        """`env` is the id of the environment, if it has one."""
        self._parameters = [p for p in policy.parameters() if p.is_floating_point() and p.numel()]
        self._sizes = np.array([p.numel() for p in self._parameters], np.int64)
        self._offsets = np.cumsum(self._sizes) - self._sizes
        self._measured = 0 < self._sizes.sum() <= LARGEST
        self._policy, self._choices = policy, policy.choices()
        self.bounds: tuple[np.ndarray, np.ndarray] | None = None
        """Bounds of continuous actions, flat; None for others."""
        if isinstance(action, Box) and action.bounded:
            low, high = action.bounds()
            self.bounds = low.ravel(), high.ravel()
        self._before: np.ndarray | None = None
        self._after: np.ndarray | None = None
        known = registry.get(env)
        self._limit = (
            {} if known is None or known.max_episode_steps is None else {"time_limit": float(known.max_episode_steps)}
        )
        self._environment = EnvironmentMonitor(tuple(self._choices), self.bounds)

    def examine(self, rollout: Rollout, updates: int) -> dict[str, float]:
        """Return what the rollouts so far show about the environment, if a window of them is complete; else {}."""
        return self._environment.add(rollout, updates)

    def forget(self) -> None:
        """Drop the last weights: the next measurement does not directly follow this one."""
        self._after = None

    def resume(self, updates: int) -> None:
        """Restore the state after `updates` updates, so that a resumed run measures the same numbers."""
        self._environment.forget()
        self._after = self._flat() if updates and self._measured and self.due(updates - 1) else None

    def due(self, updates: int) -> bool:
        """Return whether to measure the next update after `updates`: the first ones, then two in a row now and then."""
        # Two in a row: only then is a change of the weights between two updates visible.
        return updates < 3 or updates in (16, 17) or updates % EVERY < 2

    def measure(self, rollout: Rollout) -> dict[str, float]:
        """Return stats of a rollout; call before the update whose step is to be measured."""
        stats = {**_ends(rollout), **_observations(rollout), **self._actions(rollout)}
        stats |= rollout_checks(rollout, self._policy) | self._limit
        if self._measured:
            device = self._parameters[0].device
            thin = {name: np.ascontiguousarray(_thinned(x)) for name, x in rollout.obs.items()}
            share = dormant_share(self._policy, {name: torch.from_numpy(x).to(device) for name, x in thin.items()})
            stats |= {} if share is None else {"dormant_share": share}
            self._before = self._flat()
            if self._after is not None:
                stats["weight_jump"] = _norm(self._before - self._after) / max(_norm(self._after), 1e-12)
        return stats

    def weight_changes(self) -> dict[str, float]:
        """Return how far the weights moved since `measure`, relative to their norm, and the share that did not move."""
        if self._before is None:
            return {}
        after = self._flat()
        step, norm = after - self._before, _norm(after)
        moved = np.add.reduceat(step != 0.0, self._offsets, dtype=np.int64) > 0
        self._before, self._after = None, after
        return {
            "weight_norm": norm,
            "weight_step": _norm(step) / max(norm, 1e-12),
            "frozen_share": 1.0 - float(self._sizes[moved].sum()) / float(self._sizes.sum()),
        }

    def _flat(self) -> np.ndarray:
        return np.concatenate([p.detach().cpu().numpy().ravel() for p in self._parameters])

    def _actions(self, rollout: Rollout) -> dict[str, float]:
        rows = _thinned(rollout.action)
        if self.bounds is not None and rows.dtype.kind == "f":
            low, high = self.bounds
            flat = rows.reshape(len(rows), -1)
            return {"action_at_bound_share": float(np.mean((flat <= low) | (flat >= high)))}
        if len(self._choices) == 1 and rows.ndim == 1:
            uniform = math.log(self._choices[0]) if self._choices[0] > 1 else 0.0
            most = np.bincount(rows.astype(np.int64), minlength=1).max()
            return {"top_action_share": float(most) / len(rows), "entropy_max": uniform}
        return {"entropy_max": sum(math.log(n) for n in self._choices)} if self._choices else {}


@torch.no_grad()
def dormant_share(policy: Policy, obs: dict[str, Tensor]) -> float | None:
    """Return the share of hidden units that are dormant for these observations (Sokar et al. 2023), or None if unknown."""
    # A user's module is not called an extra time: it may count its calls, log or draw random numbers.
    if not isinstance(policy, ActorCritic) or policy.own_module or policy.sequential:
        return None
    outputs: list[Tensor] = []

    def recording(module: nn.Module) -> Callable[[Tensor], Tensor]:
        forward = module.forward

        def record(x: Tensor) -> Tensor:
            output = forward(x)
            if output.ndim == 2:  # [rows, units]; layers of images have more axes
                outputs.append(output.abs().mean(0))
            return output

        return record

    # Not hooks: our networks call `forward` directly, which is faster and bypasses hooks.
    units = [module for module in policy.modules() if isinstance(module, ACTIVATIONS)]
    for module in units:
        module.__dict__["forward"] = recording(module)
    try:
        policy.network.forward(obs)
    finally:
        for module in units:
            del module.__dict__["forward"]
    if not outputs:
        return None
    dormant = sum(float((each <= DORMANT * each.mean()).sum()) for each in outputs)
    return dormant / sum(len(each) for each in outputs)


def resident() -> dict[str, float]:
    """Return the resident memory of the process in megabytes; {} if the system does not report it."""
    try:
        file = _own_statm()
        pages = int(os.pread(file, 128, 0).split()[1])
    except (OSError, ValueError, IndexError):
        return {}
    return {"rss_mb": pages * mmap.PAGESIZE / 1e6}


@cache
def _own_statm() -> int:
    """Return a descriptor that stays open: opening it takes six times as long as reading it."""
    return os.open("/proc/self/statm", os.O_RDONLY)


# A forked child would read the memory of its parent.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_own_statm.cache_clear)


def _norm(x: np.ndarray) -> float:
    return math.sqrt(float(x @ x))


def _thinned(array: np.ndarray) -> np.ndarray:
    """Return at most ROWS of the [T, N, …] steps, evenly spread, as [rows, …]."""
    flat = array.reshape(-1, *array.shape[2:])
    return flat[:: -(-len(flat) // ROWS)]


def _ends(rollout: Rollout) -> dict[str, float]:
    """Return how episodes ended, and the share of continuing episodes whose bootstrap value is exactly 0."""
    # The last step of a rollout is bootstrapped too, although its episode continues.
    cut = rollout.truncated.copy()
    cut[-1] |= True
    cut &= ~rollout.terminated & rollout.valid
    count = int(np.count_nonzero(cut))
    zeros = int(np.count_nonzero(rollout.next_value[cut] == 0.0)) if count else 0
    return {
        "terminated": float(np.count_nonzero(rollout.terminated)),
        "truncated": float(np.count_nonzero(rollout.truncated)),
        "bootstrap_zero_share": zeros / count if count else 0.0,
    }


def _observations(rollout: Rollout) -> dict[str, float]:
    means: list[float] = []
    stds: list[float] = []
    for part in rollout.obs.values():
        if part.dtype.kind == "f" and math.prod(part.shape[2:]) <= WIDEST:
            rows = _thinned(part).reshape(-1, max(1, math.prod(part.shape[2:])))
            mean = np.add.reduce(rows) / len(rows)
            off = rows - mean
            means.append(float(np.abs(mean).max()))
            stds.append(math.sqrt(float((np.einsum("ij,ij->j", off, off) / len(rows)).max())))
    return {"obs_mean_max": max(means), "obs_std_max": max(stds)} if means else {}
