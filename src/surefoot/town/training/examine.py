"""Examine a candidate for promotion: against the script, against the release, and by how its training ended."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from surefoot.telemetry.reader import read_records
from surefoot.telemetry.schema import UpdateRecord
from surefoot.town.scenarios.scenario import Scenario
from surefoot.town.training.measure import measure_behaviour, measure_policy
from surefoot.town.training.promote import worse_measures
from surefoot.train.evaluate import EVAL_SEED_OFFSET
from surefoot.train.rundir.open_run import load_run_policy
from surefoot.train.rundir.rundir import RunDir
from surefoot.train.training import Training

# A prime, so that examinations never share episodes: those of one have consecutive seeds.
EXAMINATION_SEED_STEP = 7919


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """What a candidate must pass."""

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
        """Examine the policy of a run; return whether it failed for good, and the reasons against it.

        `number` counts examinations: each has its own episodes.
        """
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
        failed, unrest = self._training_problems(directory)
        return bool(worse) or failed, reasons + unrest

    def _training_problems(self, directory: RunDir) -> tuple[bool, list[str]]:
        """Return whether an anneal failed, and what the record and the anneal have against the training."""
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
