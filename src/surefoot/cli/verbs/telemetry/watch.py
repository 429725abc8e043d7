"""`surefoot telemetry watch`: follows a run and says when something is wrong, and when it is well again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from surefoot.cli.options import Runs
from surefoot.cli.usage import Usage, as_usage
from surefoot.errors import RunNotFound

if TYPE_CHECKING:
    from surefoot.telemetry.doctor.alerts import AlertRule, Alerts
    from surefoot.telemetry.doctor.webhook import Webhook
    from surefoot.telemetry.follow import Follow

_ROLLOUT = {"data_mode": ("rollout", "mixed")}
"""Where the town counts what happens; a replay has no queues."""
_FLAGS: dict[str, tuple[str, str, dict[str, tuple[str, ...]]]] = {
    "kl_threshold": ("approx_kl|kl_divergence", "above", {}),
    "loss_threshold": ("loss", "above", {}),
    "grad_threshold": ("grad_norm", "above", {}),
    "entropy_threshold": ("batch_entropy_mean|entropy", "below", {}),
    "reward_corr_threshold": ("reward_advantage_corr", "below", {}),
    "queue_events_min": ("queue_conflict_events", "below", _ROLLOUT),
    "queue_intensity_min": ("queue_conflict_intensity_sum", "below", _ROLLOUT),
    "shared_meal_min": ("shared_meal_events", "below", _ROLLOUT),
    "late_help_min": ("late_help_events", "below", _ROLLOUT),
    "shift_takeover_max": ("shift_takeover_events", "above", _ROLLOUT),
    "chat_quality_min": ("chat_quality_mean", "below", _ROLLOUT),
    "utility_outage_max": ("utility_outage_events", "above", _ROLLOUT),
    "shower_complete_min": ("shower_complete_events", "below", _ROLLOUT),
    "sleep_complete_min": ("sleep_complete_events", "below", _ROLLOUT),
    "anneal_bc_min": ("anneal_bc_accuracy", "below", {}),
}


@dataclass(frozen=True, kw_only=True)
class WatchArgs:
    """Follow a run while it trains; alerts fire when a threshold is passed and resolve when all is well again.

    Starts before the run does, keeps half-written lines until they are whole, survives rotation, truncation and
    resuming. A breach does not end it: it ends with the run, with --exit-on, or with Ctrl-C.

        surefoot telemetry watch walk --kl-threshold 0.05 --rule 'entropy<0.1:3:error'
        surefoot telemetry watch walk --rules rules.yaml --exit-on error --webhook http://127.0.0.1:9000/alerts

    A rules file is a list of rules in YAML or JSON:

        - {metric: approx_kl, above: 0.05, for: 3, clear: 0.02, severity: warn}
        - {metric: queue_conflict_events, below: 25, when: {data_mode: rollout}, name: the queue is empty}

    `for` updates in a row fire an alert; `clear_after` (3) in a row beyond `clear` (a tenth inside the threshold)
    resolve it. NaN and infinity, the doctor's findings and a run that ends in an error are told without any rule.
    Exit codes: 0 nothing is open, 1 an alert is open at the end or --exit-on was met, 2 refused.
    """

    run_name: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="RUN")]
    """A run's directory or name, or an .ndjson or .jsonl file; it need not exist yet."""
    rules: Path | None = None
    """A YAML or JSON file of rules."""
    rule: Annotated[tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(metavar="RULE")] = ()
    """One more rule: 'approx_kl>0.05', 'entropy<0.1:3' for three updates in a row, 'loss>10:1:error'."""
    exit_on: Literal["never", "info", "warn", "error", "fatal"] = "never"
    """Stop with exit code 1 at the first alert this severe."""
    webhook: str | None = None
    """Also POST each alert as JSON to this URL: https, or http on this machine."""
    once: bool = False
    """Look at what is there and stop, instead of following."""
    idle_exit: float | None = None
    """Stop after so many seconds without a new line; old logs do not say when they end."""
    interval: float = 0.2
    """Seconds between looks."""
    lines: bool = False
    """Print a line for every update, too."""
    as_json: Annotated[bool, tyro.conf.arg(name="json")] = False
    """Print each alert as a line of JSON."""
    kl_threshold: float | None = None
    """Alert when approx_kl (in old logs kl_divergence) is above."""
    loss_threshold: float | None = None
    """Alert when the loss is above."""
    grad_threshold: float | None = None
    """Alert when the gradient norm is above."""
    entropy_threshold: float | None = None
    """Alert when the entropy is below."""
    reward_corr_threshold: float | None = None
    """Alert when reward_advantage_corr is below."""
    queue_events_min: float | None = None
    """Alert when queue_conflict_events is below; this and the next eight not in replay."""
    queue_intensity_min: float | None = None
    """Alert when queue_conflict_intensity_sum is below."""
    shared_meal_min: float | None = None
    """Alert when shared_meal_events is below."""
    late_help_min: float | None = None
    """Alert when late_help_events is below."""
    shift_takeover_max: float | None = None
    """Alert when shift_takeover_events is above."""
    chat_quality_min: float | None = None
    """Alert when chat_quality_mean is below."""
    utility_outage_max: float | None = None
    """Alert when utility_outage_events is above."""
    shower_complete_min: float | None = None
    """Alert when shower_complete_events is below."""
    sleep_complete_min: float | None = None
    """Alert when sleep_complete_events is below."""
    anneal_bc_min: float | None = None
    """Alert when anneal_bc_accuracy is below."""
    runs: Runs = None

    def run(self) -> int:
        from surefoot.telemetry.doctor.alerts import Alerts
        from surefoot.telemetry.doctor.webhook import Webhook
        from surefoot.telemetry.follow import Follow

        if self.interval <= 0:
            raise Usage(f"--interval is {self.interval:g}; it is a time in seconds, above 0")
        alerts = Alerts(self._rules())
        with as_usage():
            hook = Webhook(self.webhook) if self.webhook else None
        try:
            with Follow(self._path()) as follow:
                met = self._watch(follow, alerts, hook)
        finally:
            if hook:
                hook.close()
        return 1 if met or alerts.open else 0

    def _path(self) -> Path:
        """Where the record is, or will be."""
        from surefoot.cli.verbs.telemetry.telemetry import record_of
        from surefoot.train.rundir.rundir import runs_root

        try:
            return record_of(self.run_name, self.runs)
        except RunNotFound:
            if self.once:
                raise
            given = Path(self.run_name)
            if given.suffix in (".ndjson", ".jsonl") or given.parent != Path():
                return given
            return runs_root(self.runs) / given / "telemetry.ndjson"

    def _rules(self) -> list[AlertRule]:
        from surefoot.telemetry.doctor.alerts import AlertRule, parse_rule, read_rules

        found = read_rules(self.rules) if self.rules else []
        found += [parse_rule(text) for text in self.rule]
        for flag, (metric, side, when) in _FLAGS.items():
            x: float | None = getattr(self, flag)
            if x is not None:
                above, below = (x, None) if side == "above" else (None, x)
                rule = AlertRule(metric=metric, above=above, below=below, when=when)
                found.append(replace(rule, name=f"{metric.partition('|')[0]} {side} {x:g}"))
        return found

    def _watch(self, follow: Follow, alerts: Alerts, hook: Webhook | None) -> bool:
        """True if --exit-on was met."""
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
                    ended = False  # resumed
                ended = ended or isinstance(item, EndRecord)
                if self.lines and isinstance(item, UpdateRecord) and not self.as_json:
                    print(_line(item), flush=True)
                for alert in alerts.take(item):
                    self._say(str(alert), asdict(alert))
                    if hook:
                        hook.send(asdict(alert))
                    if alert.status == "open" and SEVERITIES.index(alert.severity) >= worst:
                        return True
            quiet = time.monotonic() - last
            if ended or self.once or (self.idle_exit is not None and quiet > self.idle_exit):
                return False
            time.sleep(self.interval)

    def _say(self, text: str, plain: dict[str, Any]) -> None:
        print(json.dumps(plain) if self.as_json else f"{time.strftime('%H:%M:%S')} {text}", flush=True)


_SHOWN: tuple[str, ...] = ("loss", "approx_kl", "kl_divergence", "entropy", "grad_norm")


def _line(update: Any, number: Callable[[float], str] = "{:.4g}".format) -> str:
    told = [f"{name} {number(x)}" for name in _SHOWN if (x := update.m.get(name)) is not None]
    if update.episodes and update.episodes.return_mean is not None:
        told.insert(0, f"return {number(update.episodes.return_mean)}")
    return f"update {update.updates}, {update.env_steps:,} steps: " + ", ".join(told)
