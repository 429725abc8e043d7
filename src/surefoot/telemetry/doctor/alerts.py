"""Threshold alerts that fire and resolve: a breach must last, and be over for a while, before it is reported."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from surefoot.errors import TelemetryError
from surefoot.telemetry.doctor.findings import SEVERITIES
from surefoot.telemetry.schema import EndRecord, FindingRecord, Record, Severity, Status, UpdateRecord

_FIELDS = ("metric", "above", "below", "for", "clear", "clear_after", "severity", "when", "name")


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRule:
    """A threshold of a metric, and when the alert clears."""

    metric: str
    """A name in `m`, `episodes.return_mean`, or several separated by |: the first that a line has is used."""
    above: float | None = None
    below: float | None = None
    lasting: int = 1
    """Updates in a row before it fires."""
    clear: float | None = None
    """The value at which it clears; by default 10 % of the threshold inside of it."""
    clear_after: int = 3
    """Updates in a row inside `clear` before it resolves."""
    severity: Severity = "warn"
    when: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """Only for lines with one of these labels; a line without such a label counts too."""
    name: str = ""

    def __post_init__(self) -> None:
        if (self.above is None) == (self.below is None):
            raise TelemetryError(f"the rule for {self.metric} needs either above or below, such as above: 0.05")
        if self.lasting < 1 or self.clear_after < 1:
            raise TelemetryError(f"the rule for {self.metric} has for or clear_after below 1; they count updates")
        if self.severity not in SEVERITIES:
            raise TelemetryError(f"severity is {self.severity!r}; it must be one of {', '.join(SEVERITIES)}")
        if self.clear is not None and not self._inside(self.clear, self.threshold):
            raise TelemetryError(f"the rule for {self.metric} clears at {self.clear:g}, outside its own threshold")

    @property
    def threshold(self) -> float:
        """The value at which it fires."""
        return cast(float, self.below if self.above is None else self.above)

    @property
    def title(self) -> str:
        """Its name in an alert."""
        metric = self.metric.partition("|")[0]
        return self.name or f"{metric} {'above' if self.above is not None else 'below'} {self.threshold:g}"

    def is_breach(self, x: float) -> bool:
        """Return whether x is beyond the threshold; NaN and infinity always are."""
        return not math.isfinite(x) or (x > self.threshold if self.above is not None else x < self.threshold)

    def is_well(self, x: float) -> bool:
        """Return whether an open alert may begin to clear at x."""
        margin = 0.1 * abs(self.threshold) * (-1 if self.above is not None else 1)
        return self._inside(x, self.threshold + margin if self.clear is None else self.clear)

    def _inside(self, x: float, edge: float) -> bool:
        return math.isfinite(x) and (x <= edge if self.above is not None else x >= edge)

    def value(self, update: UpdateRecord) -> float | None:
        """Return the number of a line that this rule is about; None if the line has none."""
        for label, allowed in self.when.items():
            if label in update.labels and update.labels[label] not in allowed:
                return None
        for name in self.metric.split("|"):
            if f"m.{name}" in update.nonfinite:
                return math.nan
            if name.startswith("episodes.") and update.episodes:
                value = getattr(update.episodes, name.removeprefix("episodes."), None)
            else:
                # A line that covers several updates is as bad as the worst of them.
                extreme = update.m_max if self.above is not None else update.m_min
                value = extreme.get(name, update.m.get(name))
            if value is not None:
                return float(value)
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A rule that fired or resolved."""

    status: Status
    title: str
    severity: Severity
    value: float | None
    run: str
    update: int
    env_steps: int
    since_update: int

    def __str__(self) -> str:
        mark = f"{self.severity.upper()}" if self.status == "open" else "resolved"
        value = "" if self.value is None else f" ({self.value:.4g})"
        since = f", open since update {self.since_update}" if self.status == "resolved" else ""
        return f"{mark}: {self.title}{value} at update {self.update}{since}"


_NONFINITE = AlertRule(metric="nonfinite", above=0.0, severity="error", name="a number is not finite")


@dataclass(slots=True)
class _State:
    bad: int = 0
    well: int = 0
    measured: bool = False
    since: int | None = None
    first_bad: int = 0


class Alerts:
    """The state of every rule over a run. Also reports findings, non-finite numbers and an end with an error."""

    def __init__(self, rules: Sequence[AlertRule]) -> None:
        self._rules = rules
        self._states = [_State() for _ in rules]
        self._nonfinite = _State()
        self._metrics: set[str] = set()
        self.open: dict[str, Alert] = {}

    def take(self, record: Record) -> list[Alert]:
        """Return the alerts that fire or resolve with a record."""
        alerts: list[Alert] = []
        match record:
            case UpdateRecord():
                self._metrics |= record.m.keys()
                for rule, state in zip(self._rules, self._states, strict=True):
                    if (x := rule.value(record)) is not None:
                        state.measured = True
                        alerts += self._step(rule, state, record, x, bad=rule.is_breach(x), well=rule.is_well(x))
                bad = any(name.startswith("m.") for name in record.nonfinite)
                alerts += self._step(_NONFINITE, self._nonfinite, record, math.nan, bad=bad, well=not bad)
            case FindingRecord():
                since, title = record.since_update or record.updates, f"{record.rule}: {record.title}"
                alerts.append(_alert(record, title, record.severity, None, record.status, since))
            case EndRecord() if record.reason in ("error", "diverged"):
                title = f"the run ended: {record.reason}" + (f" ({record.message})" if record.message else "")
                alerts.append(_alert(record, title, "fatal", None, "open", record.updates))
            case _:
                pass
        for alert in alerts:
            if alert.status == "open":
                self.open[alert.title] = alert
            else:
                self.open.pop(alert.title, None)
        return alerts

    def unmeasured(self) -> list[str]:
        """Return one sentence per rule that could not fire because no update had its metric."""
        sentences: list[str] = []
        for rule, state in zip(self._rules, self._states, strict=True):
            if self._metrics and not state.measured:
                close = difflib.get_close_matches(rule.metric, self._metrics, n=1)
                advice = f"; did you mean {close[0]}?" if close and close[0] != rule.metric else ""
                labels = " with the labels of its `when`" if rule.when else ""
                sentences.append(
                    f"the rule {rule.title!r} was never checked: no update has {rule.metric}{labels}{advice}"
                )
        return sentences

    def _step(
        self, rule: AlertRule, state: _State, update: UpdateRecord, x: float, *, bad: bool, well: bool
    ) -> list[Alert]:
        state.bad = state.bad + 1 if bad else 0
        state.well = state.well + 1 if well else 0
        if state.bad == 1:
            state.first_bad = update.updates
        if state.since is None and state.bad >= rule.lasting:
            state.since = state.first_bad
            return [_alert(update, rule.title, rule.severity, x, "open", state.since)]
        if state.since is not None and state.well >= rule.clear_after:
            since, state.since = state.since, None
            return [_alert(update, rule.title, rule.severity, x, "resolved", since)]
        return []


def _alert(record: Record, title: str, severity: Severity, x: float | None, status: Status, since: int) -> Alert:
    return Alert(
        status=status,
        title=title,
        severity=severity,
        value=x if x is None or math.isfinite(x) else None,
        run=record.run,
        update=record.updates,
        env_steps=record.env_steps,
        since_update=since,
    )


def read_rules(path: Path) -> list[AlertRule]:
    """Return the rules of a YAML or JSON file: a list, or {"rules": [list]}; each {metric, above | below, for, clear, …}."""
    import yaml

    try:
        raw: Any = yaml.safe_load(path.read_text())
    except FileNotFoundError as error:
        raise TelemetryError(f"there are no rules at {path}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise TelemetryError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    if isinstance(raw, dict):
        raw = cast(dict[str, Any], raw).get("rules")
    if not isinstance(raw, list) or not raw:
        raise TelemetryError(f"{path} has no list of rules; write one such as - {{metric: approx_kl, above: 0.05}}")
    return [_rule(entry, f"{path}, rule {i}") for i, entry in enumerate(cast(list[Any], raw), 1)]


def _rule(entry: Any, where: str) -> AlertRule:
    if not isinstance(entry, dict) or "metric" not in entry:
        raise TelemetryError(f"{where} has no metric; write a rule such as {{metric: approx_kl, above: 0.05}}")
    fields = cast(dict[str, Any], entry)
    if unknown := [str(name) for name in fields if name not in _FIELDS]:
        raise TelemetryError(f"{where}: {', '.join(unknown)} unknown; a rule has {', '.join(_FIELDS)}")
    for name in ("above", "below", "clear", "for", "clear_after"):
        x = fields.get(name)
        if x is not None and (isinstance(x, bool) or not isinstance(x, int | float)):
            raise TelemetryError(f"{where}: {name} is {x!r}; it must be a number")
    labels = fields.get("when") or {}
    if not isinstance(labels, dict):
        raise TelemetryError(f"{where}: when is {labels!r}; it must be labels, such as {{data_mode: rollout}}")
    when = {
        str(k): [str(x) for x in cast(list[Any], v)] if isinstance(v, list) else [str(v)]
        for k, v in cast(dict[Any, Any], labels).items()
    }
    try:
        return AlertRule(
            metric=str(fields["metric"]),
            above=fields.get("above"),
            below=fields.get("below"),
            lasting=int(fields.get("for", 1)),
            clear=fields.get("clear"),
            clear_after=int(fields.get("clear_after", 3)),
            severity=fields.get("severity", "warn"),
            when=when,
            name=str(fields.get("name", "")),
        )
    except TelemetryError as error:
        raise TelemetryError(f"{where}: {error}") from error


def parse_rule(text: str) -> AlertRule:
    """Return the rule that a text such as `approx_kl>0.05` describes.

    `entropy<0.1:3` fires after three updates in a row, `loss>10:1:error` has a severity, and
    `queue_conflict_events<25 when data_mode=rollout,mixed` concerns only lines with one of these labels.
    """
    parts = re.fullmatch(
        r"\s*([\w.|/-]+)\s*([<>])\s*([^:\s]+?)\s*(?::(\d+))?(?::(\w+))?(?:\s+when\s+(\w+)=([\w,-]+))?\s*", text
    )
    try:
        if parts is None:
            raise ValueError
        x = float(parts[3])
    except ValueError:
        examples = "approx_kl>0.05, entropy<0.1:3 or loss>10:1:error"
        raise TelemetryError(f"{text!r} is not a rule; write it like {examples}") from None
    severity = cast(Severity, parts[5] or "warn")
    above, below = (x, None) if parts[2] == ">" else (None, x)
    when = {parts[6]: parts[7].split(",")} if parts[6] else {}
    return AlertRule(
        metric=parts[1], above=above, below=below, lasting=int(parts[4] or 1), severity=severity, when=when
    )
