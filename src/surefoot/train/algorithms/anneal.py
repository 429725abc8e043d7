"""Stages of behaviour cloning and PPO on one policy. Each stage continues with the weights of the last and is checked."""

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
# Losses and scores near 0 drift by more than any share of themselves; changes are compared with at least these sizes.
SMALLEST_LOSS, SMALLEST_SCORE = 0.05, 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One stage: passes of cloning, or updates of PPO."""

    mode: Literal["bc", "ppo"]
    epochs: int = 10
    """Passes over the recorded episodes, or updates."""
    bc_weight: float = 1.0
    """Factor on cloning's learning rate, for later stages that only make small corrections."""

    def __post_init__(self) -> None:
        if self.mode not in ("bc", "ppo"):
            raise ConfigError(f"the mode of a stage is {self.mode!r}; it must be 'bc' or 'ppo'")
        if self.epochs < 1 or self.bc_weight <= 0.0:
            raise ConfigError(
                f"a stage has epochs={self.epochs} and bc_weight={self.bc_weight}; they must be at least 1 and above 0"
            )


# Clone the recorded behaviour first, then improve it. Two PPO stages, so that the second is compared with the first.
DEFAULT_STAGES = (Stage(mode="bc", epochs=30), Stage(mode="ppo", epochs=20), Stage(mode="ppo", epochs=20))


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnealRules:
    """When a stage passes."""

    accuracy: float = 0.9
    """Share of the steps in which a clone must choose the recorded action; below it the stage fails and is undone."""
    loss_drift: float = 0.1
    """Largest increase of PPO's mean loss since the previous PPO stage, as a share of it."""
    score_drop: float = 0.1
    """Largest decrease of the score since the previous stage, as a share of it."""


@dataclass(slots=True, kw_only=True)
class StageResult:
    """The result of one stage."""

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
        return asdict(self)


def anneal(
    training: Training | Cycles,
    recording: Recording,
    stages: Sequence[Stage] = DEFAULT_STAGES,
    rules: AnnealRules | None = None,
    *,
    score: Callable[[], float],
    on_update: Callable[[UpdateReport], None] = lambda report: None,
) -> Generator[StageResult]:
    """Run the stages in order and yield the result of each. A failed clone is undone and ends the run.

    `score` measures the current policy, larger is better; `on_update` is called after every update of PPO.
    """
    rules, previous = rules or AnnealRules(), None
    for cycle, stage in enumerate(stages):
        if stage.mode == "bc":
            result = _clone(training, recording, stage, rules, cycle)
        else:
            reports: list[UpdateReport] = []
            for _ in range(stage.epochs):
                reports.append(training.update())
                on_update(reports[-1])
            loss = sum(report.loss for report in reports) / len(reports)
            stats = {name: sum(r.stats.get(name, 0.0) for r in reports) / len(reports) for name in reports[-1].stats}
            result = StageResult(cycle=cycle, mode="ppo", status="PASS", loss=loss, stats=stats)
        result.score = score()
        if previous is not None:
            _compare(result, previous, rules)
        yield result
        if result.status == "FAIL":
            return
        # Cloning has another loss than PPO, so later stages are compared with the last PPO stage if there is one.
        previous = result if result.mode == "ppo" or previous is None else previous


def verdict(results: Sequence[StageResult]) -> Status:
    """Return FAIL if a stage failed, HOLD if one needs a review, else PASS."""
    statuses = {result.status for result in results}
    return "FAIL" if "FAIL" in statuses or not results else "HOLD" if "HOLD" in statuses else "PASS"


def _clone(
    training: Training | Cycles, recording: Recording, stage: Stage, rules: AnnealRules, cycle: int
) -> StageResult:
    previous = {name: x.detach().clone() for name, x in training.policy.state_dict().items()}
    lr = CloneConfig().lr * stage.bc_weight
    config = CloneConfig(epochs=stage.epochs, lr=lr, gamma=training.spec.ppo.gamma)
    generator = torch.Generator().manual_seed(seed_for(f"anneal-{cycle}", training.spec.seed))
    reports = list(clone(training.policy, recording, config, generator=generator, device=training.device))
    # `clone` restores the weights with the best held-out likelihood; the highest agreement of a pass is the stage's accuracy.
    best = max(reports, key=lambda report: report.agreement or 0.0)
    accuracy = best.agreement or 0.0
    result = StageResult(cycle=cycle, mode="bc", status="PASS", accuracy=accuracy, loss=-best.log_prob)
    if accuracy < rules.accuracy:
        training.policy.load_state_dict(previous)
        result.status, result.rolled_back = "FAIL", True
        result.reasons.append(f"bc_stage_failed_cycle_{cycle}")
    return result


def _compare(result: StageResult, previous: StageResult, rules: AnnealRules) -> None:
    """Set HOLD if the loss rose or the score fell too much."""
    if result.status == "FAIL" or result.score is None or previous.score is None:
        return
    # Only an increase counts: a falling loss is what learning looks like. Losses of cloning and PPO are not comparable.
    before = previous.loss or 0.0
    rose = (result.loss or 0.0) - before > rules.loss_drift * max(abs(before), SMALLEST_LOSS)
    if result.mode == previous.mode == "ppo" and rose:
        result.reasons.append(f"loss_flag_cycle_{result.cycle}")
    if previous.score - result.score > rules.score_drop * max(abs(previous.score), SMALLEST_SCORE):
        result.reasons.append(f"score_flag_cycle_{result.cycle}")
    if result.reasons:
        result.status = "HOLD"
