"""Normal ranges of the PPO metrics on the dashboard, and the assessment of a value.

The limits are those of the doctor's rules R02 to R09 and R13. The median of the last five updates is compared with them,
so that a single unusual update changes no colour.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from surefoot.cli.dashboard.numbers import number
from surefoot.learn.report import UpdateReport

Word = Literal["ok", "high", "low", "wait", "nan", ""]
Level = Literal["ok", "warn", "bad", "wait", "none"]

LABELS = {
    "approx_kl": "approx kl",
    "clip_fraction": "clip frac",
    "entropy": "entropy",
    "explained_variance": "expl. var",
    "value_loss": "value loss",
    "grad_norm": "grad norm",
    "first_ratio_error": "ratio err",
    "lr": "lr",
    "action_std": "action std",
}
"""The metrics of the dashboard, in its order."""

KEYS = tuple(LABELS)
RECENT = 5
"""Updates whose median is compared with the limits."""
WARM_UP_UPDATES, WARM_UP_SHARE = 10, 0.02
"""Beginning of a run in which an untrained critic raises no warning: both must be over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Values of the run that the limits depend on."""

    progress: float
    """Completed share of the run's steps, 0 to 1."""
    first: UpdateReport
    """The first update of this process."""
    usual_value_loss: float
    """Median over more than the last five updates."""
    target_reached: bool = False
    target_kl: float | None = None
    max_grad_norm: float | None = None
    max_entropy: float | None = None
    """Entropy of the uniform policy, ln|A|; None for continuous actions."""


@dataclass(frozen=True, slots=True)
class Limits:
    """A normal range; beyond `alarm`, "high" is an error instead of a warning."""

    low: float = -math.inf
    high: float = math.inf
    alarm: float = math.inf
    shown: str = ""


@dataclass(frozen=True, slots=True)
class MetricReading:
    """The value of a metric with its assessment."""

    key: str
    value: float
    healthy: str
    """The normal range as text; empty if there is none."""
    word: Word
    level: Level

    @property
    def label(self) -> str:
        return LABELS[self.key]


def readings(recent: Sequence[UpdateReport], around: Surroundings) -> list[MetricReading]:
    """Return one reading per key in `KEYS`; action_std only if the policy has one. `recent` must not be empty."""
    learned = [r for r in recent if r.skipped_reason is None][-RECENT:] or [recent[-1]]
    out: list[MetricReading] = []
    for key in KEYS:
        values = [_value(r, key) for r in learned]
        if key == "action_std" and math.isnan(values[-1]):
            continue
        out.append(_read(key, values, learned[-1], around))
    return out


def out_of_range(metrics: Sequence[MetricReading]) -> list[MetricReading]:
    """Return the readings outside their range, the worst first."""
    return sorted((r for r in metrics if r.level in ("warn", "bad")), key=lambda r: r.level != "bad")


def _value(report: UpdateReport, key: str) -> float:
    value: float | None = getattr(report, key)
    return math.nan if value is None else value


def _read(key: str, values: list[float], last: UpdateReport, around: Surroundings) -> MetricReading:
    if not all(math.isfinite(v) for v in values):
        return MetricReading(key, next(v for v in values if not math.isfinite(v)), "finite", "nan", "bad")
    # Not the median: a single large ratio error already means a wrong log-probability.
    value = max(values) if key == "first_ratio_error" else median(values)
    limits = _limits(key, last, around)
    word, level = _judge(value, limits)
    early = last.update <= WARM_UP_UPDATES or around.progress < WARM_UP_SHARE
    if early and level == "warn" and key in ("explained_variance", "value_loss", "grad_norm"):
        word, level = "wait", "wait"
    return MetricReading(key, value, limits.shown, word, level)


def _judge(value: float, limits: Limits) -> tuple[Word, Level]:
    if math.isinf(limits.low) and math.isinf(limits.high):
        return "", "none"
    if value > limits.alarm:
        return "high", "bad"
    if value > limits.high:
        return "high", "warn"
    if value < limits.low:
        return "low", "warn"
    return "ok", "ok"


def _limits(key: str, last: UpdateReport, around: Surroundings) -> Limits:
    # With an annealed learning rate the policy hardly moves, so small values are normal.
    annealed = last.lr < 0.1 * around.first.lr
    match key:
        case "approx_kl":
            high = 0.02 if around.target_kl is None else 1.5 * around.target_kl
            return Limits(-1.0 if annealed else 1e-5, high, max(0.1, high), _below(high))
        case "clip_fraction":
            still = last.approx_kl < 1e-3 and not annealed
            return Limits(0.01 if still else -1.0, 0.3, 0.5, _between(0.01, 0.3))
        case "entropy":
            return _entropy_limits(around)
        case "explained_variance":
            return Limits(shown="flat") if _targets_are_flat(last) else Limits(low=1e-6, shown=">0")
        case "value_loss":
            return _value_loss_limits(last, around)
        case "grad_norm":
            high = math.inf if around.max_grad_norm is None else 10 * around.max_grad_norm
            return Limits(1e-7, high, shown=">0" if math.isinf(high) else _below(high))
        case "first_ratio_error":
            if last.policy_lag > 0:
                return Limits(shown="stale")
            return Limits(-1.0, 1e-4, 1e-3, "<1e-4")
        case "action_std":
            high = 2 * _value(around.first, "action_std")
            return Limits(0.05, high, shown=_between(0.05, high))
        case _:
            return Limits()


def _targets_are_flat(last: UpdateReport) -> bool:
    """Return whether the targets hardly vary; explained variance is then meaningless (-5 in a solved CartPole)."""
    return last.target_std < 0.01 * abs(last.target_mean)


def _below(high: float) -> str:
    if 1 <= high < 1000:
        return f"<{high:.3g}"
    return f"<{high:.2g}" if 1e-3 <= high < 1 else f"<{number(high)}"


def _between(low: float, high: float) -> str:
    """Return at most 7 characters, without the zero before the point: .03–.66"""
    ends = (f"{low:.1g}", f"{high:.2g}" if high < 100 else f"{high:.0f}")
    return "–".join(end.removeprefix("0") if "." in end else end for end in ends)


def _entropy_limits(around: Surroundings) -> Limits:
    """Return R06 and R07: 5 % to 95 % of the uniform policy's entropy, after the first fifth of the run.

    There is no lower limit for a policy that has reached its target.
    """
    if around.max_entropy is None:
        start = around.first.entropy
        if start <= 0 or around.first.action_std is not None or around.progress >= 0.1:
            return Limits()
        return Limits(low=0.2 * start, shown=f">{0.2 * start:.2g}")
    may_be_deterministic = around.target_reached and around.progress >= 0.3
    low = -1.0 if may_be_deterministic else 0.05 * around.max_entropy
    if around.progress < 0.2:
        return Limits(low=low, shown=f">{0.05 * around.max_entropy:.1g}")
    high = 0.95 * around.max_entropy
    return Limits(low, high, shown=_below(high) if may_be_deterministic else _between(low, high))


def _value_loss_limits(last: UpdateReport, around: Surroundings) -> Limits:
    """Return R09; value_loss is half the squared error, so its limit 1.5 becomes 0.75 times the variance of targets."""
    bounds = [10 * around.usual_value_loss, 0.0 if _targets_are_flat(last) else 0.75 * last.target_std**2]
    high = min((b for b in bounds if b > 0), default=math.inf)
    return Limits(-1.0, high, shown="" if math.isinf(high) else _below(high))
