"""Records of made-up runs with known faults, for the tests of the doctor."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from surefoot.telemetry.doctor.doctor import Doctor
from surefoot.telemetry.doctor.findings import Finding
from surefoot.telemetry.schema import VERSION, EndRecord, EpisodeRecord, Episodes, HeaderRecord, Record, UpdateRecord

HEALTHY: dict[str, float] = {
    "policy_loss": -0.01,
    "value_loss": 1.0,
    "entropy": 0.5,
    "entropy_max": math.log(2),
    "approx_kl": 0.01,
    "clip_fraction": 0.1,
    "first_ratio_error": 0.0,
    "policy_lag": 0.0,
    "explained_variance": 0.6,
    "grad_norm": 0.4,
    "target_mean": 10.0,
    "target_std": 5.0,
    "advantage_std": 1.0,
    "zero_std_minibatches": 0.0,
    "reward_mean": 1.0,
    "reward_std": 0.5,
    "lr": 3e-4,
    "ent_coef": 0.0,
    "minibatches": 40.0,
    "nonfinite_steps": 0.0,
}


def record(
    *,
    updates: int = 100,
    returns: Callable[[float], float] = lambda share: 20.0 + 400.0 * share,
    end: EndRecord | None = None,
    **changes: Any,
) -> Iterator[Record]:
    """A run of 100 updates; a change is a number, or a function of the update's number."""
    seq = 0

    def common(update: int) -> dict[str, Any]:
        nonlocal seq
        seq += 1
        return {"v": VERSION, "run": "r", "seq": seq, "t": 1e9 + update, "env_steps": 100 * update, "updates": update}

    config = {"ppo": {"lr": 3e-4, "ent_coef": 0.0, "max_grad_norm": 0.5, "target_kl": None}}
    yield HeaderRecord(**common(0), env="X-v0", seed=0, config=config, session="s", total_steps=100 * updates)
    noise = np.random.default_rng(0)
    for update in range(1, updates + 1):
        m = {name: x + 1e-3 * abs(x) * noise.standard_normal() for name, x in HEALTHY.items()}
        m |= {name: HEALTHY[name] for name in ("lr", "ent_coef", "minibatches", "entropy_max", "policy_lag")}
        m |= {name: x(update) if callable(x) else x for name, x in changes.items()}
        mean = returns(update / updates) + noise.standard_normal()
        for _ in range(2):
            yield EpisodeRecord(
                **common(update), return_=mean + noise.standard_normal(), length=int(abs(mean)) + 1, env=0
            )
        yield UpdateRecord(**common(update), m=m, episodes=Episodes(count=10, return_mean=mean))
    if end is not None:
        yield EndRecord(**common(updates), reason=end.reason, message=end.message)


def findings_of(records: Iterator[Record]) -> dict[str, Finding]:
    doctor = Doctor()
    for each in records:
        doctor.observe(each)
    return {f.rule: f for f in doctor.findings()}


def primary_of(records: Iterator[Record]) -> Finding:
    (one,) = [f for f in findings_of(records).values() if f.primary]
    return one
