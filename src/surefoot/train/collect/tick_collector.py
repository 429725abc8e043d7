"""A rollout from steps that come one tick at a time, for loops that somebody else runs. Its digits are the collector's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from surefoot.data.rollout import Rollout
from surefoot.envs.api import Arrays, Step, View
from surefoot.nets.policy import Policy, Seen
from surefoot.train.collect.episodes import EpisodeLog
from surefoot.train.collect.kernel_rollout import KernelActor
from surefoot.train.collect.reward import RewardScaler

_NOTHING = View(obs={})


@dataclass(slots=True, kw_only=True)
class Chosen:
    """What an agent did in one tick: a choice for each of N streams and all that learning from it needs."""

    action: Any
    """[N, …], as chosen: a tensor, or an array where the kernel acted."""
    value: Any
    log_prob: Any
    obs: Arrays
    """What it saw."""
    action_mask: np.ndarray | None = None
    context: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    """What the streams remembered before."""
    context_after: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    actor: KernelActor | None = None
    """The kernel, where that acted."""
    distribution: Any = None

    @property
    def action_params(self) -> dict[str, Tensor]:
        """Parameters of the distribution, worked out when asked for; {} where the kernel kept none."""
        return {} if self.distribution is None else self.distribution.params()


def as_array(x: Any) -> np.ndarray:
    """A tensor or an array as an array, not copied."""
    return x.numpy() if isinstance(x, Tensor) else x


class Ticks:
    """Takes a step of N streams in each tick; after `steps` of them `rollout` is what was collected.

    Where nobody says what a step led to (`after` is None), the last step only tells what the one before was worth, and
    steps that were cut short are left out.
    """

    def __init__(
        self, policy: Policy, streams: int, *, steps: int, gamma: float, scale_rewards: bool = False, clip: float = 10.0
    ) -> None:
        self.policy, self.streams, self.steps = policy, streams, steps
        self.episodes = EpisodeLog(streams)
        self.scaler = RewardScaler(streams, gamma=gamma, clip=clip) if scale_rewards else None
        self.env_steps = 0
        self.after: Arrays | None = None
        """What the last step led to."""
        self._start, self._every = np.ones(streams, bool), np.ones(streams, bool)
        self._begin()

    def _begin(self) -> None:
        self._rows: list[tuple[Chosen, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []
        self._cut: list[tuple[int, np.ndarray, np.ndarray]] = []

    @property
    def full(self) -> bool:
        """True once there are enough for a rollout."""
        return len(self._rows) == self.steps

    @torch.no_grad()
    def add(
        self,
        chosen: Chosen,
        reward: np.ndarray,
        terminated: np.ndarray,
        truncated: np.ndarray,
        *,
        after: Arrays | None = None,
        valid: np.ndarray | None = None,
        stats: Arrays | None = None,
    ) -> None:
        """Write one tick down. `after` is where the steps really led, ended streams included."""
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
                valid = valid & ~truncated
            else:
                self._cut.append((len(self._rows), truncated, self._worth(chosen, after)))
        self._rows.append((chosen, reward, terminated, truncated, self._start, valid))
        self.env_steps += int(np.count_nonzero(step.valid))
        self.after = after
        self._start = ended | ~step.valid

    def state(self) -> dict[str, Any]:
        """Everything that moves, a rollout that is half collected included."""
        rows = [
            {
                "action": as_array(chosen.action),
                "value": as_array(chosen.value),
                "log_prob": as_array(chosen.log_prob),
                "obs": chosen.obs,
                "mask": {} if chosen.action_mask is None else {"mask": as_array(chosen.action_mask)},
                "context": chosen.context if n == 0 else {},
                "step": {str(k): x for k, x in enumerate(rest)},
            }
            for n, (chosen, *rest) in enumerate(self._rows)
        ]
        return {
            "rows": {str(n): row for n, row in enumerate(rows)},
            "cut": {str(n): {"t": t, "streams": x, "worth": worth} for n, (t, x, worth) in enumerate(self._cut)},
            "start": self._start.copy(),
            "episodes": self.episodes.state(),
            "scaler": {} if self.scaler is None else self.scaler.state(),
            "env_steps": self.env_steps,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from where `state` was taken."""
        self._begin()
        for n in range(len(state["rows"])):
            row = state["rows"][str(n)]
            chosen = Chosen(
                action=np.array(row["action"]),
                value=np.array(row["value"]),
                log_prob=np.array(row["log_prob"]),
                obs={name: np.array(x) for name, x in row["obs"].items()},
                action_mask=np.array(row["mask"]["mask"]) if row["mask"] else None,
                context={name: torch.as_tensor(x) for name, x in row["context"].items()},
            )
            self._rows.append((chosen, *(np.array(row["step"][str(k)]) for k in range(5))))  # type: ignore[arg-type]
        self._cut = [
            (int(each["t"]), np.array(each["streams"]), np.array(each["worth"]))
            for each in (state["cut"][str(n)] for n in range(len(state["cut"])))
        ]
        self._start = np.array(state["start"])
        self.episodes.set_state(state["episodes"])
        if self.scaler is not None:
            self.scaler.set_state(state["scaler"])
        self.env_steps = int(state["env_steps"])

    def begin_anew(self) -> None:
        """Drop what is half collected: every stream starts a new episode."""
        self._begin()
        self._start = np.ones(self.streams, bool)
        for stream in range(self.streams):
            self.episodes.forget(stream)

    @torch.no_grad()
    def rollout(self, policy_version: int) -> Rollout:
        """What was collected; the next tick begins a new one."""
        rows = self._rows
        chosen = [row[0] for row in rows]
        reward, terminated, truncated, start, valid = (np.stack(column) for column in list(zip(*rows, strict=True))[1:])
        value = np.stack([as_array(each.value) for each in chosen])
        if self.after is None:
            ahead, valid = np.zeros_like(value[0]), valid.copy()
            valid[-1] &= terminated[-1]
        else:
            ahead = self._worth(chosen[-1], self.after)
        next_value = np.concatenate([value[1:], ahead[None]])
        for t, streams, worth in self._cut:
            next_value[t, streams] = worth[streams]
        stats: dict[str, float] = {}
        if self.scaler is not None:
            reward = self.scaler.scale(np.where(valid, reward, 0.0), terminated | truncated, valid)
            stats["return_std"] = float(np.sqrt(self.scaler.var))
        mask = chosen[0].action_mask
        context = chosen[0].context if self.policy.sequential else {}
        made = Rollout(
            obs={name: np.stack([each.obs[name] for each in chosen]) for name in chosen[0].obs},
            action=np.stack([as_array(each.action) for each in chosen]),
            log_prob=np.stack([as_array(each.log_prob) for each in chosen]),
            value=value,
            next_value=next_value,
            reward=np.where(valid, reward, 0.0).astype(np.float32),
            terminated=terminated,
            truncated=truncated,
            start=start,
            valid=valid,
            policy_version=np.full(valid.shape, policy_version, dtype=np.int64),
            action_mask=None if mask is None else np.stack([as_array(each.action_mask) for each in chosen]),
            context={name: x.numpy().copy() for name, x in context.items()},
            stats=stats,
        )
        self._begin()
        return made

    def _worth(self, chosen: Chosen, after: Arrays) -> np.ndarray:
        """[N]: what the critic expects of what the streams see, remembering what they do after the step."""
        if chosen.actor is not None:
            return chosen.actor.value(after)
        obs = {name: torch.from_numpy(x) for name, x in after.items() if name in chosen.obs}
        return self.policy.value(Seen(obs=obs, context=chosen.context_after)).numpy()
