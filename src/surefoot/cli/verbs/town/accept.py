"""`surefoot town accept`: capture and train in turn, check every file, answer PASS or FAIL."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from surefoot.cli.options import Seed
from surefoot.cli.usage import Usage
from surefoot.cli.verbs.town.train import ScenarioName, load

if TYPE_CHECKING:
    import numpy as np

    from surefoot.compat.townlet.harness import TrainingHarness
    from surefoot.town.scenarios.scenario import Scenario


@dataclass(frozen=True, kw_only=True)
class TownAcceptArgs:
    """Capture and train in turn, validate every file on the way, and answer PASS or FAIL (exit code 0 or 2).

        surefoot town accept queue_conflict -o accepted --cycles 3

    One policy lives through all cycles. Each captures samples, checks them, learns from live towns and from the samples,
    and compares what the samples say with what comes of reading them back. DIR gets ppo.jsonl, watch.jsonl, the samples,
    baselines.json and summary.md.
    """

    scenario: ScenarioName
    """A shipped scenario or a YAML file."""
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("acceptance")
    """Where everything is written."""
    cycles: int = 12
    """Capture and train so often; ten or more make a real acceptance."""
    updates: int = 4
    """Live updates a cycle."""
    towns: int = 16
    """Towns side by side."""
    capture_ticks: int | None = None
    """Ticks of each capture (default: an episode)."""
    episodes: int = 32
    """Unseen episodes at the beginning and at the end."""
    kl_threshold: float = 0.5
    """An update that moves the policy further is a breach."""
    grad_threshold: float = 50.0
    """So is a gradient longer than this."""
    seed: Seed = 0

    def run(self) -> int:
        from surefoot.compat.townlet.harness import TrainingHarness
        from surefoot.train.device import pin_threads

        if self.cycles < 1 or self.updates < 1:
            raise Usage(f"--cycles is {self.cycles} and --updates {self.updates}; both must be at least 1")
        pin_threads()
        scenario = load(self.scenario)
        self.output.mkdir(parents=True, exist_ok=True)
        log = self.output / "ppo.jsonl"
        log.unlink(missing_ok=True)
        settings = {"seed": self.seed, "lr": 1e-3}
        harness = TrainingHarness(scenario, settings=settings, towns=self.towns)
        begin, before = time.perf_counter(), harness.measure(self.episodes)
        rows = [self._cycle(harness, number, log) for number in range(self.cycles)]
        after = harness.measure(self.episodes)
        checks = self._checks(log, rows, before, after, scenario)
        self._write(scenario, rows, before, after, checks, time.perf_counter() - begin)
        passed = all(ok for _, ok, _ in checks)
        for name, ok, told in checks:
            print(f"{'ok  ' if ok else 'FAIL'} {name}: {told}")
        print(f"{scenario.name}: {'PASS' if passed else 'FAIL'}; {self.output / 'summary.md'}")
        return 0 if passed else 2

    def _cycle(self, harness: TrainingHarness, number: int, log: Path) -> dict[str, Any]:
        """Capture, read back, learn from the samples while they are fresh, then live."""
        from surefoot.data.replay import sample_metrics
        from surefoot.data.replayset import ReplayDataset, read_manifest

        where = self.output / f"cycle_{number:03d}"
        captured = harness.capture_rollout(self.capture_ticks, output_dir=where)
        again = ReplayDataset(
            read_manifest(where / "rollout_sample_manifest.json").entries, batch_size=len(captured.samples)
        )
        read = [again.sample(i) for i in range(len(captured.samples))]
        same = all(a.digest() == b.digest() for a, b in zip(captured.samples, read, strict=True))
        first = harness.run_ppo(again, epochs=1, log_path=log)
        reports = harness.run_ppo(epochs=self.updates, log_path=log)
        live = sum(sample_metrics(s)["reward_mean"] for s in captured.samples) / len(captured.samples)
        replayed = again.baseline_metrics["reward_mean"]
        return {
            "cycle": number,
            "samples": len(read),
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
        frozen = len(scenario.objects) == 0
        return [
            ("cycles", len(rows) >= 1, f"{len(rows)} of capture and training"),
            (
                "samples",
                all(row["identical"] for row in rows),
                f"{sum(row['samples'] for row in rows)} written, read back, the same digests",
            ),
            ("drift", drift <= 1e-6, f"live against replay {drift:.2g} in mean reward"),
            ("ratio", error <= 1e-4, f"policies find their own samples as likely as they were: {error:.1g}"),
            (
                "telemetry",
                not mistakes,
                f"{len(mistakes)} mistakes in {log.name}" + (f": {mistakes[0]}" if mistakes else ""),
            ),
            ("watch", not alerts, f"{len(alerts)} alerts" + (f": {alerts[0]}" if alerts else "")),
            ("moving", len(set(losses)) == len(losses), f"{len(losses)} updates, no two alike"),
            ("learning", gain > 0 or frozen, f"return {before['return'].mean():.3f} → {after['return'].mean():.3f}"),
        ]

    def _watch(self, log: Path) -> list[str]:
        from surefoot.telemetry.doctor.alerts import AlertRule, Alerts
        from surefoot.telemetry.reader import read_records

        rules = [
            AlertRule(metric="approx_kl|kl_divergence_max", above=self.kl_threshold, severity="error"),
            AlertRule(metric="grad_norm", above=self.grad_threshold, severity="error"),
        ]
        alerts, found = Alerts(rules), list[str]()
        with (self.output / "watch.jsonl").open("w", encoding="utf-8") as out:
            for record in read_records(log):
                told = [str(alert) for alert in alerts.take(record)]
                found += told
                out.write(json.dumps({"updates": record.updates, "alerts": told}) + "\n")
        return found

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

        script, chance = (measure_behaviour(scenario, name, self.episodes, self.seed) for name in ("script", "random"))
        known = {"random": chance, "script": script, "before": before, "after": after}
        plain = {who: {name: float(x.mean()) for name, x in found.items()} for who, found in known.items()}
        counted = {
            f"{name}_per_cycle": sum(row[name] for row in rows) / len(rows)
            for name in ("queue_conflict_events", "queue_conflict_intensity_sum")
        }
        (self.output / "baselines.json").write_text(json.dumps({**plain, **counted}, indent=2) + "\n", "utf-8")
        passed = all(ok for _, ok, _ in checks)
        lines = [
            f"# Acceptance of {scenario.name}: {'PASS' if passed else 'FAIL'}",
            "",
            f"`surefoot town accept {scenario.name} --cycles {self.cycles} --updates {self.updates} --towns {self.towns} "
            f"--seed {self.seed}` took {seconds:.0f} s.",
            "",
            "| check | | |",
            "|---|---|---|",
            *(f"| {name} | {'ok' if ok else 'FAIL'} | {told} |" for name, ok, told in checks),
            "",
            "| measure | random | script | before | after |",
            "|---|---|---|---|---|",
            *(
                "| " + " | ".join([name, *(f"{plain[who][name]:.3f}" for who in known)]) + " |"
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
            as_markdown(summarise(self.output / "ppo.jsonl")),
        ]
        (self.output / "summary.md").write_text("\n".join(lines) + "\n", "utf-8")
