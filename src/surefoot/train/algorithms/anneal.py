"""A schedule of cloning and PPO on one policy: each stage begins with the weights of the last, and must hold its ground."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import torch

from surefoot.data.seeds import seed_for
from surefoot.data.trajectory import Recording
from surefoot.errors import ConfigError
from surefoot.learn.report import UpdateReport
from surefoot.train.algorithms.clone import CloneConfig, clone
from surefoot.train.collect.replay_cycles import Cycles
from surefoot.train.training import Training

Status = Literal["PASS", "HOLD", "FAIL"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One stage: passes of cloning, or updates of PPO."""

    mode: Literal["bc", "ppo"]
    epochs: int = 10
    """Passes over the recorded episodes, or updates."""
    bc_weight: float = 1.0
    """Times the learning rate of cloning: later stages may only nudge."""

    def __post_init__(self) -> None:
        if self.mode not in ("bc", "ppo"):
            raise ConfigError(f"a stage's mode is {self.mode!r}; it is 'bc' or 'ppo'")
        if self.epochs < 1 or self.bc_weight <= 0.0:
            raise ConfigError(
                f"a stage has epochs={self.epochs} and bc_weight={self.bc_weight}; at least 1, and above 0"
            )


DEFAULT_STAGES = (Stage(mode="bc", epochs=30), Stage(mode="ppo", epochs=20), Stage(mode="ppo", epochs=20))


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnealRules:
    """When a stage passes."""

    accuracy: float = 0.9
    """A clone must choose as was recorded in this share of the steps, else the stage fails and is taken back."""
    loss_drift: float = 0.1
    """PPO's mean loss may differ from that of the PPO stage before by this share of it."""
    score_drop: float = 0.1
    """The score may fall by this share of its size since the stage before."""


@dataclass(slots=True, kw_only=True)
class StageResult:
    """What came of a stage."""

    cycle: int
    mode: str
    status: Status
    accuracy: float | None = None
    loss: float | None = None
    score: float | None = None
    reasons: list[str] = field(default_factory=list[str])
    rolled_back: bool = False
    stats: dict[str, float] = field(default_factory=dict[str, float])

    def to_json(self) -> dict[str, Any]:
        """JSON values."""
        return asdict(self)


def anneal(
    training: Training | Cycles,
    recording: Recording,
    stages: Sequence[Stage] = DEFAULT_STAGES,
    rules: AnnealRules | None = None,
    *,
    score: Callable[[], float],
    told: Callable[[UpdateReport], None] = lambda report: None,
) -> Generator[StageResult]:
    """Run the stages in turn, a result after each; a failed clone is taken back and ends it.

    `score` measures the policy as it is, larger is better; `told` hears of every update of PPO.
    """
    rules, before = rules or AnnealRules(), None
    for cycle, stage in enumerate(stages):
        made = (
            _clone(training, recording, stage, rules, cycle)
            if stage.mode == "bc"
            else _ppo(training, stage, cycle, told)
        )
        made.score = score()
        if before is not None:
            _compare(made, before, rules)
        yield made
        if made.status == "FAIL":
            return
        before = made if made.mode == "ppo" or before is None else before


def verdict(results: Sequence[StageResult]) -> Status:
    """FAIL if a stage failed, HOLD if one has to be looked at, else PASS."""
    said = {result.status for result in results}
    return "FAIL" if "FAIL" in said or not results else "HOLD" if "HOLD" in said else "PASS"


def _clone(
    training: Training | Cycles, recording: Recording, stage: Stage, rules: AnnealRules, cycle: int
) -> StageResult:
    kept = {name: x.detach().clone() for name, x in training.policy.state_dict().items()}
    base = CloneConfig()
    config = CloneConfig(epochs=stage.epochs, lr=base.lr * stage.bc_weight, gamma=training.spec.ppo.gamma)
    generator = torch.Generator().manual_seed(seed_for(f"anneal-{cycle}", training.spec.seed))
    reports = list(clone(training.policy, recording, config, generator=generator, device=training.device))
    best = max(reports, key=lambda report: report.agreement or 0.0)
    accuracy = best.agreement or 0.0
    made = StageResult(cycle=cycle, mode="bc", status="PASS", accuracy=accuracy, loss=-best.log_prob)
    if accuracy < rules.accuracy:
        training.policy.load_state_dict(kept)
        made.status, made.rolled_back = "FAIL", True
        made.reasons.append(f"bc_stage_failed_cycle_{cycle}")
    return made


def _ppo(training: Training | Cycles, stage: Stage, cycle: int, told: Callable[[UpdateReport], None]) -> StageResult:
    reports: list[UpdateReport] = []
    for _ in range(stage.epochs):
        reports.append(training.update())
        told(reports[-1])
    loss = sum(report.loss for report in reports) / len(reports)
    stats = {name: sum(r.stats.get(name, 0.0) for r in reports) / len(reports) for name in reports[-1].stats}
    return StageResult(cycle=cycle, mode="ppo", status="PASS", loss=loss, stats=stats)


def _compare(made: StageResult, before: StageResult, rules: AnnealRules) -> None:
    """HOLD what drifted; a clone and PPO have different losses, so only their scores are compared."""
    if made.status == "FAIL" or made.score is None or before.score is None:
        return
    # A loss that only falls is what learning looks like.
    rose = (made.loss or 0.0) - (before.loss or 0.0) > rules.loss_drift * max(abs(before.loss or 0.0), 0.05)
    if made.mode == before.mode == "ppo" and rose:
        made.reasons.append(f"loss_flag_cycle_{made.cycle}")
    if before.score - made.score > rules.score_drop * max(abs(before.score), 0.1):
        made.reasons.append(f"score_flag_cycle_{made.cycle}")
    if made.reasons:
        made.status = "HOLD"
