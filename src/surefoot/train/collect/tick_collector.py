"""Builds a rollout from steps that arrive one tick at a time, for loops that run elsewhere. Same digits as `Collector`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from surefoot.data.rollout import Rollout
from surefoot.data.rollout_builder import RolloutBuilder
from surefoot.envs.api import Arrays, Step, View
from surefoot.nets.policy import Policy, PolicyInput
from surefoot.train.collect.episodes import EpisodeLog
from surefoot.train.collect.kernel_act import kernel_values
from surefoot.train.collect.kernel_rollout import KernelActor
from surefoot.train.collect.reward import RewardScaler

_NOTHING = View(obs={})
_DECISION = ("action", "value", "log_prob")
_OUTCOME = ("reward", "terminated", "truncated", "start", "valid")


@dataclass(slots=True, kw_only=True)
class ActionRecord:
    """What an agent did in one tick: an action for each of N streams, and what learning from it needs."""

    action: Any
    """[N, …], as chosen: a tensor, or an array where the kernel acted."""
    value: Any
    log_prob: Any
    obs: Arrays
    """The observations it acted on."""
    action_mask: np.ndarray | None = None
    start: np.ndarray | None = None
    """[N] bool: an episode begins; only where the kernel acted with memory."""
    context: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    """Memory of the streams before the tick."""
    context_after: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    actor: KernelActor | None = None
    """The kernel's actor, if it acted."""
    distribution: Any = None

    @property
    def action_params(self) -> dict[str, Tensor]:
        """Mean and std, or probabilities: of the distribution; where the kernel acted, of the current weights."""
        if self.distribution is None and self.actor is not None:
            inputs = PolicyInput.from_arrays(self.obs, self.action_mask, self.start, self.context)
            with torch.no_grad():
                # The mode draws no random number; a sample would change the digits of the run.
                self.distribution = self.actor.net.policy.act(
                    inputs, generator=torch.Generator(), deterministic=True
                ).distribution
        return {} if self.distribution is None else self.distribution.params()


def as_array(x: Any) -> np.ndarray:
    """Return a tensor or an array as an array, without a copy."""
    return x.numpy() if isinstance(x, Tensor) else x


class Ticks:
    """Collects one step of N streams per tick; after `steps` of them `rollout` returns the rollout.

    If the observation after a step is not known (`after` is None), the last step only serves as the successor of the
    step before it, and truncated steps are left out.
    """

    def __init__(
        self, policy: Policy, streams: int, *, steps: int, gamma: float, scale_rewards: bool = False, clip: float = 10.0
    ) -> None:
        self.policy, self.streams, self.steps = policy, streams, steps
        self.episodes = EpisodeLog(streams)
        self.scaler = RewardScaler(streams, gamma=gamma, clip=clip) if scale_rewards else None
        self.env_steps = 0
        self.after: Arrays | None = None
        """The observations after the last step."""
        self.start, self._every = np.ones(streams, bool), np.ones(streams, bool)
        """[N] whether an episode begins with the next tick."""
        self._begin()

    def _begin(self) -> None:
        self._builder = RolloutBuilder(self.steps, self.streams)
        self._context: dict[str, Tensor] = {}
        self._last: ActionRecord | None = None

    @property
    def full(self) -> bool:
        """Whether there are enough ticks for a rollout."""
        return self._builder.steps == self.steps

    def add(
        self,
        chosen: ActionRecord,
        reward: np.ndarray,
        terminated: np.ndarray,
        truncated: np.ndarray,
        *,
        after: Arrays | None = None,
        valid: np.ndarray | None = None,
        stats: Arrays | None = None,
    ) -> None:
        """Add one tick. `after` holds the true successors, also of streams whose episode ended."""
        valid = self._every if valid is None else valid
        step = Step(
            view=_NOTHING, reward=reward, terminated=terminated, truncated=truncated, valid=valid, stats=stats or {}
        )
        ended = terminated | truncated
        self.episodes.count(step)
        if np.count_nonzero(ended):
            self.episodes.finish(step, ended)
        if np.count_nonzero(truncated):
            if after is None:
                # Without its last observation a truncated episode cannot be bootstrapped.
                valid = valid & ~truncated
            else:
                self._builder.cut(self._builder.steps, truncated, self._value(chosen, after))
        self._add(chosen, reward, terminated, truncated, self.start, valid)
        self.env_steps += int(np.count_nonzero(step.valid))
        self.after = after
        self.start = ended | ~step.valid

    def _add(self, chosen: ActionRecord, *outcome: np.ndarray) -> None:
        if self._builder.steps == 0:
            self._context = chosen.context
        parts = {f"obs.{name}": x for name, x in chosen.obs.items()}
        parts |= {name: as_array(getattr(chosen, name)) for name in _DECISION}
        if chosen.action_mask is not None:
            parts["action_mask"] = as_array(chosen.action_mask)
        self._builder.add(parts | dict(zip(_OUTCOME, outcome, strict=True)))
        self._last = chosen

    def state(self) -> dict[str, Any]:
        """Return everything that changes, an unfinished rollout included."""
        builder, rows = self._builder, dict[str, Any]()
        for n in range(builder.steps):
            row = {name: x[n] for name, x in builder.arrays.items()}
            rows[str(n)] = {
                **{name: row[name] for name in _DECISION},
                "obs": {name.removeprefix("obs."): x for name, x in row.items() if name.startswith("obs.")},
                "mask": {"mask": row["action_mask"]} if "action_mask" in row else {},
                "context": self._context if n == 0 else {},
                "step": {str(k): row[name] for k, name in enumerate(_OUTCOME)},
            }
        return {
            "rows": rows,
            "cut": {str(n): {"t": t, "streams": x, "worth": v} for n, (t, x, v) in enumerate(builder.cuts)},
            "start": self.start.copy(),
            "episodes": self.episodes.state(),
            "scaler": {} if self.scaler is None else self.scaler.state(),
            "env_steps": self.env_steps,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""
        self._begin()
        for n in range(len(state["rows"])):
            row = state["rows"][str(n)]
            chosen = ActionRecord(
                action=np.array(row["action"]),
                value=np.array(row["value"]),
                log_prob=np.array(row["log_prob"]),
                obs={name: np.array(x) for name, x in row["obs"].items()},
                action_mask=np.array(row["mask"]["mask"]) if row["mask"] else None,
                context={name: torch.as_tensor(x) for name, x in row["context"].items()},
            )
            self._add(chosen, *(np.array(row["step"][str(k)]) for k in range(len(_OUTCOME))))
        for n in range(len(state["cut"])):
            cut = state["cut"][str(n)]
            self._builder.cut(int(cut["t"]), np.array(cut["streams"]), np.array(cut["worth"]))
        self.start = np.array(state["start"])
        self.episodes.set_state(state["episodes"])
        if self.scaler is not None:
            self.scaler.set_state(state["scaler"])
        self.env_steps = int(state["env_steps"])

    def begin_anew(self) -> None:
        """Drop an unfinished rollout: every stream starts a new episode."""
        self._begin()
        self.start = np.ones(self.streams, bool)
        for stream in range(self.streams):
            self.episodes.forget(stream)

    def rollout(self, policy_version: int) -> Rollout:
        """Return the rollout; the next tick begins a new one."""
        builder, last = self._builder, self._last
        assert last is not None, "no tick was added"
        reward, terminated, truncated, _, valid = (builder.arrays[name] for name in _OUTCOME)
        if self.after is None:
            # The value after the last step is unknown; only a terminated step has none to know.
            ahead = np.zeros_like(builder.arrays["value"][0])
            valid[-1] &= terminated[-1]
        else:
            ahead = self._value(last, self.after)
        stats: dict[str, float] = {}
        if self.scaler is not None:
            reward = self.scaler.scale(np.where(valid, reward, 0.0), terminated | truncated, valid)
            stats["return_std"] = float(np.sqrt(self.scaler.var))
        context = self._context if self.policy.sequential else {}
        rollout = builder.build(
            policy_version,
            ahead=ahead,
            context={name: x.numpy().copy() for name, x in context.items()},
            stats=stats,
            reward=np.where(valid, reward, 0.0).astype(np.float32),
        )
        self._begin()
        return rollout

    def _value(self, chosen: ActionRecord, after: Arrays) -> np.ndarray:
        """Return the critic's values of `after`, [N], with the memory that the streams have after the step."""
        if chosen.actor is not None:
            after_step = {name: x.numpy() for name, x in chosen.context_after.items()}
            return kernel_values(chosen.actor, after, after_step)
        obs = {name: x for name, x in after.items() if name in chosen.obs}
        with torch.no_grad():
            return self.policy.value(PolicyInput.from_arrays(obs, context=chosen.context_after)).numpy()
