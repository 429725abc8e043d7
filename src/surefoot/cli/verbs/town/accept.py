"""`surefoot town accept`: an acceptance test of capture, replay and training."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from surefoot.cli.options import Pairs, Seed, at_least_one, options_from, pairs
from surefoot.cli.verbs.town.samples import ScenarioName, load

if TYPE_CHECKING:
    import numpy as np

    from surefoot.compat.townlet.harness import TrainingHarness
    from surefoot.town.scenarios.scenario import Scenario


@dataclass(frozen=True, kw_only=True)
class AcceptOptions:
    """Keys of --set."""

    updates: int = 4
    towns: int = 16
    capture_ticks: int | None = None
    episodes: int = 32
    # Limits that only a broken update passes; PPO usually stops an update at an approx_kl of 0.01 to 0.05.
    kl_threshold: float = 0.5
    grad_threshold: float = 50.0


@dataclass(frozen=True, kw_only=True)
class TownAcceptArgs:
    """Run an acceptance test: capture samples and train in cycles, validate every file, print PASS or FAIL.

        surefoot town accept queue_conflict -o accepted --cycles 3

    One policy is trained through all cycles. Each cycle captures samples, validates them, learns from live towns and from
    the samples, and compares the rewards in the samples with those read back. The directory gets ppo.jsonl, watch.jsonl,
    the samples, baselines.json and summary.md. Exit codes: 0 PASS, 2 FAIL.
    """

    scenario: ScenarioName
    """A shipped scenario or a YAML file."""
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("acceptance")
    """Directory to write to."""
    cycles: int = 12
    """Cycles of capture and training; a real acceptance test has at least ten."""
    set: Pairs = ()
    """Option of the test; repeatable. updates=4 live updates per cycle, towns=16 in parallel, capture_ticks=TICKS per capture
    (default: an episode), episodes=32 for the evaluations before and after, kl_threshold=0.5 and grad_threshold=50 as
    limits of approx_kl and of the gradient norm."""
    seed: Seed = 0

    @cached_property
    def options(self) -> AcceptOptions:
        """The options of --set."""
        return options_from(AcceptOptions, pairs(self.set, "--set"), "--set")

    def run(self) -> int:
        from surefoot.compat.townlet.harness import TrainingHarness
        from surefoot.train.device import pin_threads

        at_least_one(cycles=self.cycles, updates=self.options.updates)
        pin_threads()
        scenario = load(self.scenario)
        self.out.mkdir(parents=True, exist_ok=True)
        log = self.out / "ppo.jsonl"
        log.unlink(missing_ok=True)
        # A high learning rate, so that the few updates of a test show learning.
        settings = {"seed": self.seed, "lr": 1e-3}
        harness = TrainingHarness(scenario, settings=settings, towns=self.options.towns)
        begin, before = time.perf_counter(), harness.measure(self.options.episodes)
        rows = [self._cycle(harness, number, log) for number in range(self.cycles)]
        after = harness.measure(self.options.episodes)
        checks = self._checks(log, rows, before, after, scenario)
        self._write(scenario, rows, before, after, checks, time.perf_counter() - begin)
        passed = all(ok for _, ok, _ in checks)
        for name, ok, text in checks:
            print(f"{'ok  ' if ok else 'FAIL'} {name}: {text}")
        print(f"{scenario.name}: {'PASS' if passed else 'FAIL'}; {self.out / 'summary.md'}")
        return 0 if passed else 2

    def _cycle(self, harness: TrainingHarness, number: int, log: Path) -> dict[str, Any]:
        """Capture samples, read them back, learn from them while they are on-policy, then learn from live towns."""
        from surefoot.data.replay import sample_metrics
        from surefoot.data.replayset import ReplayDataset, read_manifest

        directory = self.out / f"cycle_{number:03d}"
        captured = harness.capture_rollout(self.options.capture_ticks, output_dir=directory)
        again = ReplayDataset(
            read_manifest(directory / "rollout_sample_manifest.json").entries, batch_size=len(captured.samples)
        )
        reread = [again.sample(i) for i in range(len(captured.samples))]
        same = all(a.digest() == b.digest() for a, b in zip(captured.samples, reread, strict=True))
        first = harness.run_ppo(again, epochs=1, log_path=log)
        reports = harness.run_ppo(epochs=self.options.updates, log_path=log)
        live = sum(sample_metrics(s)["reward_mean"] for s in captured.samples) / len(captured.samples)
        replayed = again.baseline_metrics["reward_mean"]
        return {
            "cycle": number,
            "samples": len(reread),
            "identical": same,
            "reward_live": live,
            "reward_replay": replayed,
            "drift": abs(live - replayed),
            "ratio_error": max(report.first_ratio_error for report in first[:1]),
            "loss": reports[-1].loss,
            "kl": max(report.approx_kl for report in reports),
            "entropy": reports[-1].entropy,
            "queue_conflict_events": sum(report.stats.get("queue_conflict_events", 0.0) for report in reports),
            "queue_conflict_intensity_sum": sum(
                report.stats.get("queue_conflict_intensity_sum", 0.0) for report in reports
            ),
            "weights": [report.loss for report in reports],
        }

    def _checks(
        self,
        log: Path,
        rows: list[dict[str, Any]],
        before: dict[str, np.ndarray],
        after: dict[str, np.ndarray],
        scenario: Scenario,
    ) -> list[tuple[str, bool, str]]:
        from surefoot.telemetry.validate import validate

        verdicts = validate(log)
        mistakes = [mistake for verdict in verdicts for mistake in verdict.mistakes if mistake.weight == "error"]
        alerts = self._watch(log)
        losses = [loss for row in rows for loss in row["weights"]]
        gain = float(after["return"].mean() - before["return"].mean())
        drift = max(row["drift"] for row in rows)
        error = max(row["ratio_error"] for row in rows)
        empty = len(scenario.objects) == 0  # without objects there is nothing to learn
        return [
            ("cycles", len(rows) >= 1, f"{len(rows)} cycles of capture and training"),
            (
                "samples",
                all(row["identical"] for row in rows),
                f"{sum(row['samples'] for row in rows)} written and read back with the same digests",
            ),
            ("drift", drift <= 1e-6, f"mean reward of live and replayed samples differs by {drift:.2g}"),
            ("ratio", error <= 1e-4, f"largest error of the first importance ratio on fresh samples: {error:.1g}"),
            (
                "telemetry",
                not mistakes,
                f"{len(mistakes)} mistakes in {log.name}" + (f": {mistakes[0]}" if mistakes else ""),
            ),
            ("watch", not alerts, f"{len(alerts)} alerts" + (f": {alerts[0]}" if alerts else "")),
            ("moving", len(set(losses)) == len(losses), f"{len(losses)} updates, all with different losses"),
            ("learning", gain > 0 or empty, f"return {before['return'].mean():.3f} → {after['return'].mean():.3f}"),
        ]

    def _watch(self, log: Path) -> list[str]:
        from surefoot.telemetry.doctor.alerts import AlertRule, Alerts
        from surefoot.telemetry.reader import read_records

        rules = [
            AlertRule(metric="approx_kl|kl_divergence_max", above=self.options.kl_threshold, severity="error"),
            AlertRule(metric="grad_norm", above=self.options.grad_threshold, severity="error"),
        ]
        alerts, texts = Alerts(rules), list[str]()
        with (self.out / "watch.jsonl").open("w", encoding="utf-8") as out:
            for record in read_records(log):
                fired = [str(alert) for alert in alerts.take(record)]
                texts += fired
                out.write(json.dumps({"updates": record.updates, "alerts": fired}) + "\n")
        return texts

    def _write(
        self,
        scenario: Scenario,
        rows: list[dict[str, Any]],
        before: dict[str, np.ndarray],
        after: dict[str, np.ndarray],
        checks: list[tuple[str, bool, str]],
        seconds: float,
    ) -> None:
        from surefoot.telemetry.export.summary import as_markdown, summarise
        from surefoot.town.training.measure import measure_behaviour

        script, chance = (
            measure_behaviour(scenario, name, self.options.episodes, self.seed) for name in ("script", "random")
        )
        measured = {"random": chance, "script": script, "before": before, "after": after}
        plain = {who: {name: float(x.mean()) for name, x in row.items()} for who, row in measured.items()}
        counted = {
            f"{name}_per_cycle": sum(row[name] for row in rows) / len(rows)
            for name in ("queue_conflict_events", "queue_conflict_intensity_sum")
        }
        (self.out / "baselines.json").write_text(json.dumps({**plain, **counted}, indent=2) + "\n", "utf-8")
        passed = all(ok for _, ok, _ in checks)
        lines = [
            f"# Acceptance of {scenario.name}: {'PASS' if passed else 'FAIL'}",
            "",
            f"`surefoot town accept {scenario.name} --cycles {self.cycles} --seed {self.seed} "
            f"--set updates={self.options.updates} --set towns={self.options.towns}` took {seconds:.0f} s.",
            "",
            "| check | | |",
            "|---|---|---|",
            *(f"| {name} | {'ok' if ok else 'FAIL'} | {text} |" for name, ok, text in checks),
            "",
            "| measure | random | script | before | after |",
            "|---|---|---|---|---|",
            *(
                "| " + " | ".join([name, *(f"{plain[who][name]:.3f}" for who in measured)]) + " |"
                for name in dict.fromkeys([*scenario.measures, "return", "need_deficit"])
            ),
            "",
            "| cycle | samples | reward live | reward replayed | conflicts | intensity | loss | kl | entropy |",
            "|---|---|---|---|---|---|---|---|---|",
            *(
                f"| {r['cycle']} | {r['samples']} | {r['reward_live']:.4f} | {r['reward_replay']:.4f} "
                f"| {r['queue_conflict_events']:.0f} | {r['queue_conflict_intensity_sum']:.1f} | {r['loss']:.4f} "
                f"| {r['kl']:.4f} | {r['entropy']:.3f} |"
                for r in rows
            ),
            "",
            as_markdown(summarise(self.out / "ppo.jsonl")),
        ]
        (self.out / "summary.md").write_text("\n".join(lines) + "\n", "utf-8")
