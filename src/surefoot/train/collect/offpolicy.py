"""Old rollouts corrected for the current policy by V-trace (Espeholt et al. 2018).

The learner needs no change, because `next_value` is data. Each step becomes an episode of one step whose successor has
the corrected return as its value, so that the learner's GAE gives

    A_t = r_t + γ (V(s_{t+1}) + λ (v_{t+1} - V(s_{t+1}))) - V(s_t)
    v_t = V(s_t) + δ_t + γ c_t (v_{t+1} - V(s_{t+1}))
    δ_t = ρ_t (r_t + γ V(s_{t+1}) - V(s_t))

with ρ = min(ρ̄, π/μ) and c = λ min(c̄, π/μ). For π = μ this is GAE. The ratio that PPO clips is π/μ too, from the
log-probs that were stored when the actions were chosen.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from surefoot.core.batch import Batch
from surefoot.core.losses import LOG_RATIO_LIMIT
from surefoot.data.kinds import NOT_NEGATIVE, POSITIVE, UNIT, integer, optional, real
from surefoot.data.knobs import Config, documented, knob
from surefoot.data.rollout import Rollout
from surefoot.errors import ConfigError, ReplayError
from surefoot.nets.policy import Policy

# Rows per forward pass: large samples would need gigabytes of activations, and larger pieces are not faster on a CPU.
PIECE = 8192


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRules(Config):
    """Which old data is used, and how far it is trusted."""

    max_lag: int | None = knob(
        None,
        "Most updates since the data was collected; none for no limit (data of another run has no such number).",
        optional(integer(NOT_NEGATIVE)),
    )
    min_sample_size: float = knob(
        0.05,
        "Smallest effective sample size under the importance ratio, as a share of the steps; below it data is stale.",
        real(UNIT),
    )
    rho_clip: float = knob(1.0, "ρ̄: upper limit of the weights of the corrections.", real(POSITIVE))
    trace_clip: float = knob(1.0, "c̄: upper limit of the weights by which corrections reach back.", real(POSITIVE))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayAssessment:
    """How far old data is from the current policy."""

    lag: int
    sample_size: float
    """Effective sample size, as a share of all steps."""
    weight: float
    """Mean importance ratio."""
    stale: str | None
    """Why the data is not used, or None."""


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
) -> tuple[Rollout, ReplayAssessment]:
    """Return `rollout` with the values of `policy` and corrected returns, and the assessment of its age.

    `same_run` means that `policy_version` counts updates of this policy; otherwise the lag is 0.
    """
    if policy.sequential:
        raise ConfigError(
            "a policy with memory cannot learn from replay: the stored hidden states belong to older weights"
        )
    log_prob, value = _evaluate(rollout, policy, torch.device(device))
    log_ratio = np.clip(log_prob - rollout.log_prob, -LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
    valid, ratio = rollout.valid, np.exp(log_ratio)
    weights = ratio[valid].astype(np.float64)
    # Kish's effective sample size, (Σw)² / Σw², as a share of n.
    size = float(weights.sum() ** 2 / (np.square(weights).sum() * max(len(weights), 1))) if len(weights) else 0.0
    lag = version - int(rollout.policy_version[valid].min()) if same_run and valid.any() else 0
    stale = None
    if rules.max_lag is not None and lag > rules.max_lag:
        stale = f"it is {lag} updates old, more than max_lag={rules.max_lag}"
    elif size < rules.min_sample_size:
        stale = f"its effective sample size is {size:.1%}, less than min_sample_size={rules.min_sample_size:.1%}"
    weight = float(weights.mean()) if len(weights) else 0.0
    every_step = np.ones_like(valid)
    # Versions of another run mean nothing here; its data counts as one update old, so that it is never taken for fresh.
    versions = rollout.policy_version if same_run else np.full_like(rollout.policy_version, version - 1)
    renewed = replace(
        rollout,
        value=value,
        next_value=_vtrace(rollout, value, ratio, rules, gamma=gamma, lam=lam),
        truncated=every_step & ~rollout.terminated,
        start=every_step,
        policy_version=versions,
        stats={**rollout.stats, "replay_lag": float(lag), "replay_sample_size": size, "replay_weight": weight},
    )
    return renewed, ReplayAssessment(lag=lag, sample_size=size, weight=weight, stale=stale)


@torch.no_grad()
def _evaluate(rollout: Rollout, policy: Policy, device: torch.device) -> tuple[np.ndarray, np.ndarray]:
    """Return log-probs and values of the stored steps under the current policy, both [T, N]."""
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
        parts = [policy.evaluate(batch.slice(i, min(i + PIECE, rows))) for i in range(0, rows, PIECE)]
    except (RuntimeError, KeyError, IndexError) as why:
        raise ReplayError(
            f"the samples do not fit this policy ({str(why).splitlines()[0]}); they must come from the same scenario with "
            "the same observations"
        ) from why
    log_prob, value = (torch.cat([getattr(p, name) for p in parts], dim=1) for name in ("log_prob", "value"))
    return log_prob.reshape(steps, streams).cpu().numpy(), value.reshape(steps, streams).cpu().numpy()


def _vtrace(
    rollout: Rollout, value: np.ndarray, ratio: np.ndarray, rules: ReplayRules, *, gamma: float, lam: float
) -> np.ndarray:
    """Return the corrected value of each step's successor, [T, N]."""
    steps, ended = len(value), rollout.ended
    # A successor in the rollout has the current critic's value. At an end its observation was not stored, so the value of
    # the time it was collected is the only one there is.
    after = rollout.next_value.copy()
    after[:-1] = np.where(ended[:-1], after[:-1], value[1:])
    rho = np.minimum(ratio, rules.rho_clip)
    trace = lam * np.minimum(ratio, rules.trace_clip)
    delta = rho * (rollout.reward + gamma * after * ~rollout.terminated - value)
    correction, corrected = np.zeros_like(value[0]), after.copy()
    for t in range(steps - 1, -1, -1):
        continues = ~ended[t] if t + 1 < steps else np.zeros_like(ended[t])
        corrected[t] = after[t] + lam * np.where(continues, correction, 0.0)
        correction = delta[t] + gamma * trace[t] * np.where(continues, correction, 0.0)
    return corrected.astype(np.float32)
