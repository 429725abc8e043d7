"""`surefoot town promote`: whether a policy may take over a town."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from surefoot.cli.options import CheckpointName, Run, run_directory
from surefoot.cli.usage import Usage


@dataclass(frozen=True, kw_only=True)
class TownPromoteArgs:
    """Look at a run's policy as a candidate: exit code 0 promotes it, 1 holds it back, 2 fails it.

        surefoot town promote queues --dry-run
        surefoot town promote queues --rollback

    A candidate must not be worse than the release (at first: than the script) in any measure of the scenario, beyond what
    chance explains, in several looks at unseen episodes; and the end of its training must be calm. An anneal that failed
    fails it. --rollback goes back to the release before.
    """

    run_name: Run
    state: Path | None = None
    """Where releases are kept (default: promotion-SCENARIO.json under the runs)."""
    required_passes: int = 2
    """Looks that a candidate must pass in a row."""
    looks: int | None = None
    """How often to look now (default: as often as is required)."""
    episodes: int = 64
    """Unseen episodes of each look."""
    tolerance: float = 0.02
    """Share of the release's measure by which a candidate may be worse."""
    kl_threshold: float = 0.05
    """Of the last updates' approx_kl."""
    grad_threshold: float = 2.5
    """Of the last updates' gradient norm."""
    rollback: bool = False
    """Go back to the release before."""
    dry_run: bool = False
    """Decide, but change nothing."""
    json: bool = False
    """As JSON."""
    checkpoint: CheckpointName = "latest"
    runs: Path | None = None
    """Where runs are kept."""

    def run(self) -> int:
        from surefoot.cli.verbs.runs import load_policy
        from surefoot.town.scenarios.scenario import Scenario
        from surefoot.town.training.capture import policy_hash
        from surefoot.town.training.examine import Gates
        from surefoot.town.training.promote import Promotion
        from surefoot.train.rundir.rundir import runs_root

        directory = run_directory(self.run_name, self.runs)
        training, step = load_policy(directory, self.checkpoint, None)
        if "scenario" not in training.spec.env_kwargs:
            raise Usage(f"{directory.name} is no run of a town; `surefoot town train` makes one")
        scenario = Scenario.from_json(training.spec.env_kwargs["scenario"])
        where = self.state or runs_root(self.runs) / f"promotion-{scenario.name}.json"
        promotion = Promotion.load(where)
        if self.rollback:
            before = promotion.rolled_back()
            promotion.save(where)
            print(f"rolled back to {before['run'] if before else 'the script'}")
            return 0
        promotion.required_passes = self.required_passes
        gates = Gates(
            episodes=self.episodes,
            tolerance=self.tolerance,
            kl_threshold=self.kl_threshold,
            grad_threshold=self.grad_threshold,
        )
        digest, decision, reasons = policy_hash(training.policy), "HOLD", list[str]()
        for look in range(self.looks or self.required_passes):
            failed, reasons = gates.examine(
                training, scenario, directory, promotion.current_release, look + len(promotion.history)
            )
            decision = promotion.evaluated(digest, reasons, failed=failed)
            if decision != "HOLD" or reasons:
                break
        if decision == "PROMOTE":
            promotion.promoted({"run": str(directory.path), "checkpoint": step, "policy_hash": digest})
        if not self.dry_run:
            promotion.save(where)
        why = reasons or (
            []
            if decision == "PROMOTE"
            else [f"candidate_not_ready: {promotion.pass_streak} of {self.required_passes} passes"]
        )
        if self.json:
            print(json.dumps({"decision": decision, "reasons": why, "run": str(directory.path), "checkpoint": step}))
        else:
            print(f"{directory.name}: {decision}" + "".join(f"\n  {reason}" for reason in why))
        return {"PROMOTE": 0, "HOLD": 1, "FAIL": 2}[decision]
