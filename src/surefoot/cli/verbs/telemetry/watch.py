"""`surefoot telemetry watch`: follow a run and print alerts."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import tyro

from surefoot.cli.options import RunName
from surefoot.cli.usage import as_usage
from surefoot.errors import RunNotFound

if TYPE_CHECKING:
    from surefoot.telemetry.doctor.alerts import AlertRule, Alerts
    from surefoot.telemetry.doctor.webhook import Webhook
    from surefoot.telemetry.follow import Follow
    from surefoot.telemetry.schema import UpdateRecord

# Seconds between two reads: soon enough for a person, and hardly any work.
INTERVAL = 0.2


@dataclass(frozen=True, kw_only=True)
class WatchArgs:
    """Follow a run while it trains and print an alert when a metric passes a threshold, and again when it recovers.

        surefoot telemetry watch walk --rule 'approx_kl>0.05' --rule 'entropy<0.1:3:error'
        surefoot telemetry watch walk --rule rules.yaml --exit-on error --webhook http://127.0.0.1:9000/alerts

    You can start it before the run. It waits for incomplete lines and survives rotation, truncation and resuming. It exits
    when the run ends, with --exit-on, or with Ctrl-C; an alert alone does not end it.

    A rules file is a list of rules in YAML or JSON:

        - {metric: approx_kl, above: 0.05, for: 3, clear: 0.02, severity: warn}
        - {metric: queue_conflict_events, below: 25, when: {data_mode: rollout}, name: the queue is empty}

    An alert fires after `for` updates in a row beyond the threshold, and resolves after `clear_after` (3) in a row inside
    `clear` (by default a tenth inside the threshold). NaN and infinity, the doctor's findings and a run that ends with an
    error are reported without any rule.
    Exit codes: 0 no alert is open at the end, 1 an alert is open or --exit-on was met, 2 refused.
    """

    run_name: RunName
    """The directory or name of a run, or an .ndjson or .jsonl file; it need not exist yet."""
    rule: Annotated[tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(metavar="RULE")] = ()
    """One rule, or a YAML or JSON file of rules; repeatable: 'approx_kl>0.05'; 'entropy<0.1:3' after three updates in a row;
    'loss>10:1:error' with a severity; 'queue_conflict_events<25 when data_mode=rollout,mixed' for lines with these labels."""
    exit_on: Literal["never", "info", "warn", "error", "fatal"] = "never"
    """Exit with code 1 at the first alert of this severity or a higher one."""
    webhook: str | None = None
    """Also POST each alert as JSON to this URL: https, or http on this machine."""
    once: bool = False
    """Read what exists and exit instead of following."""
    idle_exit: float | None = None
    """Exit after this many seconds without a new line; logs of telemetry 1.x have no end marker."""
    lines: bool = False
    """Also print one line per update."""
    as_json: ClassVar[bool] = False

    def run(self) -> int:
        from surefoot.telemetry.doctor.alerts import Alerts
        from surefoot.telemetry.doctor.webhook import Webhook
        from surefoot.telemetry.follow import Follow

        alerts = Alerts([rule for text in self.rule for rule in _rules(text)])
        with as_usage():
            hook = Webhook(self.webhook) if self.webhook else None
        try:
            with Follow(self._path()) as follow:
                met = self._watch(follow, alerts, hook)
        finally:
            if hook:
                hook.close()
        for sentence in alerts.unmeasured():
            print(f"surefoot telemetry watch: {sentence}", file=sys.stderr)
        return 1 if met or alerts.open else 0

    def _path(self) -> Path:
        """Return where the telemetry is, or will be."""
        from surefoot.cli.verbs.telemetry.telemetry import record_of
        from surefoot.train.rundir.rundir import runs_root

        try:
            return record_of(self.run_name)
        except RunNotFound:
            if self.once:
                raise
            path = Path(self.run_name)
            if path.suffix in (".ndjson", ".jsonl") or path.parent != Path():
                return path
            return runs_root() / path / "telemetry.ndjson"

    def _watch(self, follow: Follow, alerts: Alerts, hook: Webhook | None) -> bool:
        """Print alerts until the run ends; return whether --exit-on was met."""
        from surefoot.telemetry.doctor.alerts import SEVERITIES
        from surefoot.telemetry.reader import LineProblem
        from surefoot.telemetry.schema import EndRecord, EventRecord, HeaderRecord, UpdateRecord

        worst = len(SEVERITIES) if self.exit_on == "never" else SEVERITIES.index(self.exit_on)
        last = time.monotonic()
        ended = False
        while True:
            for item in follow.poll():
                last = time.monotonic()
                if isinstance(item, LineProblem):
                    self._say(f"unreadable: {item}", {"status": "unreadable", "where": str(item)})
                    continue
                if isinstance(item, HeaderRecord | EventRecord):
                    ended = False  # the run was resumed
                ended = ended or isinstance(item, EndRecord)
                if self.lines and isinstance(item, UpdateRecord) and not self.as_json:
                    print(update_line(item), flush=True)
                for alert in alerts.take(item):
                    self._say(str(alert), asdict(alert))
                    if hook:
                        hook.send(asdict(alert))
                    if alert.status == "open" and SEVERITIES.index(alert.severity) >= worst:
                        return True
            quiet = time.monotonic() - last
            if ended or self.once or (self.idle_exit is not None and quiet > self.idle_exit):
                return False
            time.sleep(INTERVAL)

    def _say(self, text: str, plain: dict[str, Any]) -> None:
        print(json.dumps(plain) if self.as_json else f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def _rules(text: str) -> list[AlertRule]:
    """Return the rules of a value of --rule: a rule, or a file of rules."""
    from surefoot.telemetry.doctor.alerts import parse_rule, read_rules

    path = Path(text)
    return read_rules(path) if path.suffix in (".yaml", ".yml", ".json") or path.is_file() else [parse_rule(text)]


def update_line(update: UpdateRecord) -> str:
    """Return one line with the main metrics of an update; `kl_divergence` is the name of approx_kl in telemetry 1.x."""
    names = ("loss", "approx_kl", "kl_divergence", "entropy", "grad_norm")
    metrics = [f"{name} {x:.4g}" for name in names if (x := update.m.get(name)) is not None]
    if update.episodes and update.episodes.return_mean is not None:
        metrics.insert(0, f"return {update.episodes.return_mean:.4g}")
    return f"update {update.updates}, {update.env_steps:,} steps: " + ", ".join(metrics)
