"""`surefoot town promote`: decide whether a policy becomes the release of a town."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from surefoot.cli.options import CheckpointName, Pairs, Run, options_from, run_directory, split_settings
from surefoot.cli.usage import Usage


@dataclass(frozen=True, kw_only=True)
class PromoteOptions:
    """Keys of --set besides those of `Gates`."""

    required_passes: int = 2
    looks: int | None = None


@dataclass(frozen=True, kw_only=True)
class TownPromoteArgs:
    """Examine a run's policy and promote it to release if it passes the gates.

        surefoot town promote queues --dry-run
        surefoot town promote queues --rollback

    A candidate passes if it is not significantly worse than the current release (at first: the script) in any measure of
    the scenario, in several examinations on unseen episodes, and if the last updates of its training were stable. A failed
    anneal fails it. Exit codes: 0 promoted, 1 held back, 2 failed.
    """

    run_name: Run
    state: Path | None = None
    """File of the releases (default: promotion-SCENARIO.json in the directory of runs)."""
    set: Pairs = ()
    """Rule of the decision; repeatable. required_passes=2 examinations in a row, looks=N examinations now (default: as many
    as required), episodes=64 per examination, tolerance=0.02 share by which a measure may be worse, kl_threshold=0.05 and
    grad_threshold=2.5 for approx_kl and gradient norm of the last updates."""
    rollback: bool = False
    """Return to the previous release."""
    dry_run: bool = False
    """Print the decision without changing anything."""
    checkpoint: CheckpointName = "latest"
    as_json: ClassVar[bool] = False

    def run(self) -> int:
        from surefoot.cli.verbs.runs import load_policy
        from surefoot.town.scenarios.scenario import Scenario
        from surefoot.town.training.capture import policy_hash
        from surefoot.town.training.promote import Gates, Promotion
        from surefoot.train.rundir.rundir import runs_root

        directory = run_directory(self.run_name)
        training, step = load_policy(directory, self.checkpoint, None)
        if "scenario" not in training.spec.env_kwargs:
            raise Usage(f"{directory.name} is not a run of a town; `surefoot town train` creates one")
        scenario = Scenario.from_json(training.spec.env_kwargs["scenario"])
        state = self.state or runs_root() / f"promotion-{scenario.name}.json"
        promotion = Promotion.load(state)
        if self.rollback:
            before = promotion.rolled_back()
            promotion.save(state)
            print(f"rolled back to {before['run'] if before else 'the script'}")
            return 0
        rules, texts = split_settings(PromoteOptions, self.set)
        gates = options_from(Gates, texts, "--set")
        promotion.required_passes = rules.required_passes
        digest, decision, reasons = policy_hash(training.policy), "HOLD", list[str]()
        for examination in range(rules.looks or rules.required_passes):
            failed, reasons = gates.examine(
                training, scenario, directory, promotion.current_release, examination + len(promotion.history)
            )
            decision = promotion.evaluated(digest, reasons, failed=failed)
            if decision != "HOLD" or reasons:
                break
        if decision == "PROMOTE":
            promotion.promoted({"run": str(directory.path), "checkpoint": step, "policy_hash": digest})
        if not self.dry_run:
            promotion.save(state)
        why = reasons or (
            []
            if decision == "PROMOTE"
            else [f"candidate_not_ready: {promotion.pass_streak} of {rules.required_passes} passes"]
        )
        if self.as_json:
            print(json.dumps({"decision": decision, "reasons": why, "run": str(directory.path), "checkpoint": step}))
        else:
            print(f"{directory.name}: {decision}" + "".join(f"\n  {reason}" for reason in why))
        return {"PROMOTE": 0, "HOLD": 1, "FAIL": 2}[decision]
