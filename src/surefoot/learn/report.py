"""The numbers of one update, as telemetry, the dashboard and the doctor read them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from surefoot.learn.report_builder import Table


class EpochReport(NamedTuple):
    """One epoch; each number is the mean over its minibatches."""

    epoch: int
    minibatches: int
    policy_loss: float
    value_loss: float
    entropy: float
    loss: float
    approx_kl: float
    clip_fraction: float
    grad_norm: float

    def as_dict(self) -> dict[str, Any]:
        """Return all fields as JSON values."""
        return self._asdict()


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateReport:
    """What `Learner.update` returns. Means are over the minibatches that took a gradient step."""

    update: int
    """Number of this update, counted from 1, across resumes."""
    policy_version: int
    samples: int
    """Valid steps learned from."""
    path: str
    """Which implementation ran: "torch" or "native"."""
    path_reason: str
    """Why that implementation."""

    policy_loss: float = 0.0
    value_loss: float = 0.0
    """Half the mean squared error (the larger of the two where the value is clipped), divided by value_scale²."""
    entropy: float = 0.0
    entropy_std: float = 0.0
    loss: float = 0.0
    """policy_loss - ent_coef · entropy + vf_coef · value_loss (+ kl_coef · kl_to_reference)."""
    kl_to_reference: float = 0.0

    approx_kl: float = 0.0
    """k3: mean of (r - 1) - log r, never negative."""
    approx_kl_max: float = 0.0
    kl_divergence: float = 0.0
    """Signed mean of old minus new log-prob (k1)."""
    clip_fraction: float = 0.0
    clip_fraction_max: float = 0.0
    first_ratio_error: float = 0.0
    """max |ratio - 1| in the first minibatch of the first epoch; ~0 for a fresh rollout."""
    effective_sample_size: float = 1.0
    """Effective sample size under the importance ratio at the start of the update, as a share of the rollout."""
    grad_norm: float = 0.0
    """Before clipping."""
    grad_norm_max: float = 0.0

    explained_variance: float = 0.0
    """1 - Var[target - value] / Var[target]; 0 if the targets do not vary."""
    advantage_mean: float = 0.0
    advantage_std: float = 0.0
    advantage_min_std: float = 0.0
    """Smallest standard deviation of raw advantages in any minibatch."""
    clipped_minibatches: int = 0
    """Minibatches in which some ratio left the clip range."""
    zero_std_minibatches: int = 0
    """Minibatches whose advantages did not vary; they were set to 0."""
    reward_advantage_corr: float = 0.0
    reward_mean: float = 0.0
    """After reward scaling."""
    reward_std: float = 0.0
    value_mean: float = 0.0
    target_mean: float = 0.0
    target_std: float = 0.0
    value_scale: float = 1.0
    """The standard deviation that the critic's targets were divided by; 1 without normalize_value."""
    action_std: float | None = None
    """Mean standard deviation of a Gaussian policy; None for others."""

    lr: float = 0.0
    clip: float = 0.0
    ent_coef: float = 0.0
    temperature: float = 1.0
    minibatches: int = 0
    """Gradient steps taken."""
    epochs: tuple[EpochReport, ...] = ()
    stopped_early: bool = False
    """The target KL ended the update."""

    skipped_reason: str | None = None
    """Why nothing was learned; None if something was."""
    nonfinite_steps: int = 0
    """Gradient steps skipped because the loss or the gradient was not finite."""
    rolled_back: bool = False
    """Weights and optimiser were restored to the start of this update, and the learning rate was halved."""
    clamped_fraction: float = 0.0
    """Share of log-ratios clamped to ±20."""
    policy_lag: int = 0
    """Largest number of updates between the policy that acted and the one that learned."""

    seconds: dict[str, float] = field(default_factory=dict[str, float])
    """Seconds per phase: "prepare" and "learn"; the loop adds "collect", "env" and "policy"."""
    stats: dict[str, float] = field(default_factory=dict[str, float])
    """Numbers that the rollout carries (guards, counters of the use)."""
    gradient_steps: Table | None = field(default=None, repr=False, compare=False)
    """All numbers of every gradient step."""

    def metrics(self) -> dict[str, float]:
        """Return the plain numbers by name; without epochs, timings and None."""
        return dict(zip(*self.row(), strict=True))

    def row(self) -> tuple[tuple[str, ...], tuple[float, ...]]:
        """Return the names and values of `metrics`; the names tuple is shared by reports, which makes sums over many cheap."""
        return (_WITHOUT_STD, _without_std(self)) if self.action_std is None else (_NUMBERS, _numbers(self))

    def as_dict(self) -> dict[str, Any]:
        """Return all fields but `gradient_steps` as JSON values."""
        return {**{name: getattr(self, name) for name in _NAMES}, "epochs": [each.as_dict() for each in self.epochs]}


# Not dataclasses.asdict: it passes every number through copy.deepcopy, a hundred times as slow.
_NAMES = tuple(entry.name for entry in fields(UpdateReport) if entry.name != "gradient_steps")
# Without the first two, update and policy_version, which count instead of measuring.
_NUMBERS = tuple(e.name for e in fields(UpdateReport) if e.type in ("int", "float", "float | None"))[2:]
_WITHOUT_STD = tuple(name for name in _NUMBERS if name != "action_std")
_numbers, _without_std = attrgetter(*_NUMBERS), attrgetter(*_WITHOUT_STD)
