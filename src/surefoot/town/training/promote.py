"""Promotion: a candidate must pass examinations several times before it becomes the release.

An examination compares it with the script and the current release, and checks how its training ended.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from surefoot.errors import CheckpointError
from surefoot.telemetry.reader import read_records
from surefoot.telemetry.schema import UpdateRecord
from surefoot.town.scenarios.scenario import Scenario
from surefoot.town.sim.measure import SMALLER_IS_BETTER
from surefoot.train.rundir.rundir import RunDir

if TYPE_CHECKING:
    from surefoot.train.training import Training

Decision = Literal["PROMOTE", "HOLD", "FAIL"]
# Entries of the history that are kept: far more than anyone rolls back, and the file stays small.
HISTORY = 50
# A prime, so that examinations never share episodes: those of one have consecutive seeds.
EXAMINATION_SEED_STEP = 7919


@dataclass(slots=True, kw_only=True)
class Promotion:
    """The releases of one town; `state` is monitoring, ready or promoted."""

    state: str = "monitoring"
    pass_streak: int = 0
    required_passes: int = 2
    candidate: str | None = None
    """Hash of the policy under examination."""
    current_release: dict[str, Any] | None = None
    initial_release: dict[str, Any] | None = None
    last_result: str | None = None
    history: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @property
    def candidate_ready(self) -> bool:
        """True once the candidate has passed often enough."""
        return self.pass_streak >= self.required_passes

    def evaluated(self, candidate: str, reasons: Sequence[str], *, failed: bool) -> Decision:
        """Record one examination and return the decision; a new candidate starts with no passes."""
        if candidate != self.candidate:
            self.candidate, self.pass_streak = candidate, 0
        if failed or reasons:
            self.pass_streak, self.state = 0, "monitoring"
            self.last_result = "FAIL" if failed else "HOLD"
        else:
            self.pass_streak += 1
            self.state = "ready" if self.candidate_ready else "monitoring"
            self.last_result = "PROMOTE" if self.candidate_ready else "HOLD"
        self._note(self.last_result, candidate=candidate, reasons=list(reasons))
        decision: Any = self.last_result
        return decision

    def promoted(self, release: Mapping[str, Any]) -> None:
        """Make the candidate the release; the previous one stays in the history."""
        self._note("promoted", release=dict(release), before=self.current_release)
        self.current_release = dict(release)
        self.initial_release = self.initial_release or dict(release)
        self.state, self.candidate, self.pass_streak = "promoted", None, 0

    def rolled_back(self) -> dict[str, Any] | None:
        """Return to the previous release; None means that the script takes over."""
        if self.current_release is None:
            raise CheckpointError("there is no promoted release to roll back")
        promotions = [entry for entry in reversed(self.history) if entry["what"] == "promoted"]
        before = next((entry["before"] for entry in promotions if entry["release"] == self.current_release), None)
        self._note("rolled_back", release=self.current_release)
        self.current_release, self.state = before, "monitoring"
        return before

    def _note(self, what: str, **about: Any) -> None:
        self.history.append({"what": what, **about})
        del self.history[:-HISTORY]

    def save(self, path: Path) -> None:
        """Write the file atomically."""
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")
        temporary.replace(path)

    @classmethod
    def load(cls, path: Path) -> Promotion:
        """Read what `save` wrote; return a new one if there is no file."""
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return cls()
        except (ValueError, TypeError) as why:
            raise CheckpointError(f"{path} is not the state of a promotion: {why}") from why


def worse_measures(
    candidate: Mapping[str, np.ndarray],
    release: Mapping[str, np.ndarray],
    measures: Sequence[str],
    *,
    tolerance: float = 0.02,
    named: str = "release",
) -> list[str]:
    """Return one sentence per measure in which the candidate is worse than the release.

    Worse means that the 95 % interval of its mean lies beyond the release's mean by more than the tolerance.
    """
    sentences: list[str] = []
    for name in measures:
        values, mean = candidate[name], float(release[name].mean())
        margin = 1.96 * float(values.std()) / max(len(values), 1) ** 0.5 + tolerance * max(abs(mean), 1e-3)
        worse = float(values.mean() - mean) * (1.0 if name in SMALLER_IS_BETTER else -1.0)
        if worse > margin:
            sentences.append(f"{name} is {values.mean():.4g}, the {named}'s is {mean:.4g}")
    return sentences


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """Thresholds of an examination."""

    episodes: int = 64
    """Unseen episodes per examination."""
    tolerance: float = 0.02
    """Share of the release's measure by which a candidate may be worse."""
    kl_threshold: float = 0.05
    grad_threshold: float = 2.5
    """Limits of the mean approx_kl and gradient norm over the last five updates."""

    def examine(
        self, training: Training, scenario: Scenario, directory: RunDir, release: Mapping[str, Any] | None, number: int
    ) -> tuple[bool, list[str]]:
        """Examine the policy of a run; return whether it failed finally, and the reasons against it.

        `number` counts examinations; each uses other episodes.
        """
        # Not at the top: the state of a promotion is read without torch.
        from surefoot.town.training.measure import measure_behaviour, measure_policy
        from surefoot.train.evaluate import EVAL_SEED_OFFSET
        from surefoot.train.rundir.open_run import load_run_policy

        kwargs = training.spec.env_kwargs
        seed = EVAL_SEED_OFFSET + EXAMINATION_SEED_STEP * number
        measured = partial(
            measure_policy,
            scenario=scenario,
            episodes=self.episodes,
            seed=seed,
            variant=kwargs.get("variant"),
            central=bool(kwargs.get("central")),
        )
        measures = scenario.measures or ["return"]
        candidate = measured(training.policy)
        script = measure_behaviour(scenario, "script", self.episodes, seed - EVAL_SEED_OFFSET)
        worse = worse_measures(candidate, script, measures, tolerance=self.tolerance, named="script")
        reasons = list(worse)
        if release is not None and Path(release["run"]).is_dir():
            other, _ = load_run_policy(RunDir(Path(release["run"])), str(release["checkpoint"]), None)
            reasons += worse_measures(candidate, measured(other.policy), measures, tolerance=self.tolerance)
        failed, problems = self._training_problems(directory)
        return bool(worse) or failed, reasons + problems

    def _training_problems(self, directory: RunDir) -> tuple[bool, list[str]]:
        """Return whether an anneal failed, and the problems in the record and in the anneal's results."""
        reasons: list[str] = []
        updates = [record for record in read_records(directory.telemetry) if isinstance(record, UpdateRecord)][-5:]
        for name, limit in (("approx_kl", self.kl_threshold), ("grad_norm", self.grad_threshold)):
            values = [x for update in updates if (x := update.m.get(name)) is not None]
            if values and (mean := sum(values) / len(values)) > limit:
                reasons.append(f"{name} is {mean:.3g} at the end of training, above {limit:g}")
        results = directory.path / "anneal_results.json"
        if not results.is_file():
            return False, reasons
        document = json.loads(results.read_text(encoding="utf-8"))
        reasons += [reason for stage in document["stages"] for reason in stage["reasons"]]
        return document["status"] == "FAIL", reasons
