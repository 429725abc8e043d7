"""Old rollouts made fit to learn from: judged by how far the policy has moved on, and worth what clipped weights say.

V-trace (Espeholt et al. 2018) needs no place in the learner: `next_value` is data. Each step becomes an episode of its own
whose successor is worth the corrected return, so that the learner's GAE gives

    A_t = r_t + γ (V(s_{t+1}) + λ (v_{t+1} - V(s_{t+1}))) - V(s_t)
    v_t = V(s_t) + δ_t + γ c_t (v_{t+1} - V(s_{t+1}))
    δ_t = ρ_t (r_t + γ V(s_{t+1}) - V(s_t))

with ρ = min(ρ̄, π/μ) and c = λ min(c̄, π/μ). With π = μ this is GAE itself. The ratio that PPO clips is π/μ too, from the
log-probs that were written down when the actions were chosen.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from surefoot.core.batch import Batch
from surefoot.core.losses import LOG_RATIO_LIMIT
from surefoot.data.rollout import Rollout
from surefoot.errors import ConfigError, ReplayError
from surefoot.nets.policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRules:
    """What old data must be like, and how far it is believed."""

    max_lag: int | None = None
    """Updates since it was collected, at most; None does not count them (data of another run has no such number)."""
    min_sample_size: float = 0.05
    """Share of the data that must still count under the importance ratio; below that it is stale."""
    rho_clip: float = 1.0
    """ρ̄: weights of the corrections are held below this."""
    trace_clip: float = 1.0
    """c̄: likewise for how far corrections reach back."""

    def __post_init__(self) -> None:
        if self.max_lag is not None and self.max_lag < 0:
            raise ConfigError(f"max_lag is {self.max_lag}; it is at least 0, or none")
        if not 0.0 <= self.min_sample_size <= 1.0:
            raise ConfigError(f"min_sample_size is {self.min_sample_size}; it is a share, 0 to 1")
        if self.rho_clip <= 0.0 or self.trace_clip <= 0.0:
            raise ConfigError(f"rho_clip is {self.rho_clip} and trace_clip {self.trace_clip}; both must be above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """How old data looks to the policy of now."""

    lag: int
    sample_size: float
    """Effective, as a share of all steps."""
    weight: float
    """Mean importance ratio."""
    stale: str | None
    """Why it is not learned from, or None."""


def renew(
    rollout: Rollout,
    policy: Policy,
    rules: ReplayRules,
    *,
    gamma: float,
    lam: float,
    version: int,
    device: str | torch.device = "cpu",
    same_run: bool = True,
) -> tuple[Rollout, Judged]:
    """`rollout` with values and corrected returns of `policy`, and how it was judged.

    `same_run` says that `policy_version` counts the updates of this very policy; else there is no lag to speak of.
    """
    if policy.sequential:
        raise ConfigError(
            "a policy with memory cannot learn from replay: its hidden states were those of other weights"
        )
    log_prob, value = _now(rollout, policy, torch.device(device))
    log_ratio = np.clip(log_prob - rollout.log_prob, -LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
    valid = rollout.valid
    ratio = np.exp(log_ratio)
    counted = ratio[valid].astype(np.float64)
    size = float(counted.sum() ** 2 / (np.square(counted).sum() * max(len(counted), 1))) if len(counted) else 0.0
    lag = version - int(rollout.policy_version[valid].min()) if same_run and valid.any() else 0
    judged = Judged(
        lag=lag, sample_size=size, weight=float(counted.mean()) if len(counted) else 0.0, stale=_stale(rules, lag, size)
    )
    corrected = _vtrace(rollout, value, ratio, rules, gamma=gamma, lam=lam)
    ends = np.ones_like(valid)
    # Somebody else's samples are never fresh, whatever number they bear: one update old is the least they can be.
    now = rollout.policy_version if same_run else np.full_like(rollout.policy_version, version - 1)
    fit = replace(
        rollout,
        value=value,
        next_value=corrected,
        truncated=ends & ~rollout.terminated,
        start=ends,
        policy_version=now,
        stats={
            **rollout.stats,
            "replay_lag": float(lag),
            "replay_sample_size": judged.sample_size,
            "replay_weight": judged.weight,
        },
    )
    return fit, judged


def _stale(rules: ReplayRules, lag: int, size: float) -> str | None:
    if rules.max_lag is not None and lag > rules.max_lag:
        return f"it is {lag} updates old, more than max_lag={rules.max_lag}"
    if size < rules.min_sample_size:
        return f"only {size:.1%} of it still counts under the importance ratio, less than {rules.min_sample_size:.1%}"
    return None


@torch.no_grad()
def _now(rollout: Rollout, policy: Policy, device: torch.device) -> tuple[np.ndarray, np.ndarray]:
    """[T, N] log-prob and value of what was done, by the policy of now."""
    steps, streams = rollout.reward.shape
    rows = steps * streams

    def row(array: np.ndarray) -> torch.Tensor:
        flat = array.reshape(1, rows, *array.shape[2:])
        return torch.from_numpy(np.ascontiguousarray(flat)).to(device)

    zeros = torch.zeros((1, rows), device=device)
    batch = Batch(
        obs={name: row(x) for name, x in rollout.obs.items()},
        action=row(rollout.action),
        log_prob=zeros,
        value=zeros,
        advantage=zeros,
        target=zeros,
        action_mask=None if rollout.action_mask is None else row(rollout.action_mask),
    )
    try:
        parts = [policy.evaluate(batch.slice(i, min(i + 8192, rows))) for i in range(0, rows, 8192)]
    except (RuntimeError, KeyError, IndexError) as why:
        raise ReplayError(
            f"the samples do not fit this policy ({str(why).splitlines()[0]}); they must come from the same scenario with "
            "the same observations"
        ) from why
    said = [torch.cat([getattr(p, name) for p in parts], dim=1) for name in ("log_prob", "value")]
    log_prob, value = (x.reshape(steps, streams).cpu().numpy() for x in said)
    return log_prob, value


def _vtrace(
    rollout: Rollout, value: np.ndarray, ratio: np.ndarray, rules: ReplayRules, *, gamma: float, lam: float
) -> np.ndarray:
    """[T, N] what the successor of each step is worth."""
    steps = len(value)
    ended = rollout.ended
    # The successor that was seen is judged by the critic of now; where an episode or the sample ends, by that of then.
    after = rollout.next_value.copy()
    after[:-1] = np.where(ended[:-1], after[:-1], value[1:])
    alive = ~rollout.terminated
    rho = np.minimum(ratio, rules.rho_clip)
    trace = lam * np.minimum(ratio, rules.trace_clip)
    delta = rho * (rollout.reward + gamma * after * alive - value)
    correction = np.zeros_like(value[0])
    corrected = after.copy()
    for t in range(steps - 1, -1, -1):
        going_on = ~ended[t] if t + 1 < steps else np.zeros_like(ended[t])
        corrected[t] = after[t] + lam * np.where(going_on, correction, 0.0)
        correction = delta[t] + gamma * trace[t] * np.where(going_on, correction, 0.0)
    return corrected.astype(np.float32)
