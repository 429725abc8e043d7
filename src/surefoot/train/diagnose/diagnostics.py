"""A few numbers of each rollout and update that only the doctor needs: cheap, and nothing learns from them.

`seen` goes into a rollout's stats before it is learned from; `moved` into the report's after.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from surefoot.data.rollout import Rollout
from surefoot.data.spaces import ActionSpace, Box
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.policy import Policy

ROWS = 256
"""Steps of a rollout that are looked at."""
WIDEST = 4096
"""Numbers of an observation part up to which it is looked at; pictures are scaled anyway."""
EVERY = 64
"""Updates from one look to the next, so that all of this takes less than 0.5 % of the time."""
LARGEST = 1_000_000
"""Parameters up to which their steps are measured; the copy of a larger model would cost too much."""
ACTIVATIONS = (nn.ReLU, nn.Tanh, nn.ELU, nn.GELU, nn.SiLU, nn.LeakyReLU)
SILENT = 0.025
"""A unit whose mean answer is below this share of its layer's is dormant."""


class Vitals:
    """Remembers where the weights were, so that each update can say how far they went."""

    def __init__(self, policy: Policy, action: ActionSpace) -> None:
        self._parameters = [p for p in policy.parameters() if p.is_floating_point() and p.numel()]
        self._sizes = np.array([p.numel() for p in self._parameters], np.int64)
        self._offsets = np.cumsum(self._sizes) - self._sizes
        self._measured = 0 < self._sizes.sum() <= LARGEST
        self._policy, self._choices, self._action = policy, policy.choices(), action
        self._bounds = _bounds(action)
        self._before: np.ndarray | None = None
        self._after: np.ndarray | None = None

    def forget(self) -> None:
        """The next look has none right before it to compare with."""
        self._after = None

    def taken_up(self, updates: int) -> None:
        """A run goes on after so many updates: with the same numbers as if it had never stopped."""
        self._after = self._flat() if updates and self._measured and self.due(updates - 1) else None

    def due(self, updates: int) -> bool:
        """Whether to look at the update after so many: the first ones, then two in a row now and then."""
        return updates < 3 or updates in (16, 17) or updates % EVERY < 2

    def seen(self, rollout: Rollout) -> dict[str, float]:
        """What was seen and done; call before the update, which is measured from here on."""
        found = {**_ends(rollout), **_observations(rollout), **self._actions(rollout)}
        if self._measured:
            device = self._parameters[0].device
            thin = {name: np.ascontiguousarray(_thinned(x)) for name, x in rollout.obs.items()}
            share = dormant_share(self._policy, {name: torch.from_numpy(x).to(device) for name, x in thin.items()})
            found |= {} if share is None else {"dormant_share": share}
            self._before = self._flat()
            if self._after is not None:
                found["weight_jump"] = _norm(self._before - self._after) / max(_norm(self._after), 1e-12)
        return found

    def moved(self) -> dict[str, float]:
        """How far the weights went since `seen`, as a share of themselves, and which share did not move at all."""
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
        if self._bounds is not None and rows.dtype.kind == "f":
            low, high = self._bounds
            flat = rows.reshape(len(rows), -1)
            return {"action_at_bound_share": float(np.mean((flat <= low) | (flat >= high)))}
        if len(self._choices) == 1 and rows.ndim == 1:
            uniform = math.log(self._choices[0]) if self._choices[0] > 1 else 0.0
            most = np.bincount(rows.astype(np.int64), minlength=1).max()
            return {"top_action_share": float(most) / len(rows), "entropy_max": uniform}
        return {"entropy_max": sum(math.log(n) for n in self._choices)} if self._choices else {}


@torch.no_grad()
def dormant_share(policy: Policy, obs: dict[str, Tensor]) -> float | None:
    """Return the share of the hidden units that no longer answer to these observations (Sokar et al. 2023).

    None where there are no units to look at.
    """
    # A module or a policy of somebody's own is not asked behind their back: they may count, log or draw.
    if not isinstance(policy, ActorCritic) or policy.own_module or policy.sequential:
        return None
    answers: list[Tensor] = []

    def listening(module: nn.Module) -> Callable[[Tensor], Tensor]:
        answer = module.forward

        def heard(x: Tensor) -> Tensor:
            given = answer(x)
            if given.ndim == 2:  # [rows, units]: of images, the layers after the pictures
                answers.append(given.abs().mean(0))
            return given

        return heard

    # Not hooks: our own networks call `forward` itself, which is quicker and goes past them.
    units = [module for module in policy.modules() if isinstance(module, ACTIVATIONS)]
    for module in units:
        module.__dict__["forward"] = listening(module)
    try:
        policy.network.forward(obs)
    finally:
        for module in units:
            del module.__dict__["forward"]
    if not answers:
        return None
    silent = sum(float((each <= SILENT * each.mean()).sum()) for each in answers)
    return silent / sum(len(each) for each in answers)


def resident() -> dict[str, float]:
    """Megabytes of memory that the process holds, where the system says so."""
    try:
        with open("/proc/self/statm", "rb") as file:
            pages = int(file.read().split()[1])
    except (OSError, ValueError, IndexError):
        return {}
    return {"rss_mb": pages * mmap.PAGESIZE / 1e6}


def _norm(x: np.ndarray) -> float:
    return math.sqrt(float(x @ x))


def _bounds(action: ActionSpace) -> tuple[np.ndarray, np.ndarray] | None:
    if not isinstance(action, Box) or not action.bounded:
        return None
    low, high = action.bounds()
    return low.ravel(), high.ravel()


def _thinned(array: np.ndarray) -> np.ndarray:
    """At most ROWS of the [T, N, …] steps, evenly spread, as [rows, …]."""
    flat = array.reshape(-1, *array.shape[2:])
    return flat[:: -(-len(flat) // ROWS)]


def _ends(rollout: Rollout) -> dict[str, float]:
    """How episodes ended, and how many that go on are said to be worth exactly nothing from there."""
    cut = rollout.truncated.copy()
    cut[-1] |= True
    cut &= ~rollout.terminated & rollout.valid
    count = int(np.count_nonzero(cut))
    nothing = int(np.count_nonzero(rollout.next_value[cut] == 0.0)) if count else 0
    return {
        "terminated": float(np.count_nonzero(rollout.terminated)),
        "truncated": float(np.count_nonzero(rollout.truncated)),
        "bootstrap_zero_share": nothing / count if count else 0.0,
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
