"""Thresholds that fire and resolve: a breach must last, and be over for a while, before it is told."""

from __future__ import annotations

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
    """When a number is too large or too small, and when it is well again."""

    metric: str
    """Its name in `m`, `episodes.return_mean`, or several with | between them: the first that a line has counts."""
    above: float | None = None
    below: float | None = None
    lasting: int = 1
    """Updates in a row before it fires."""
    clear: float | None = None
    """Where it is well again; by default a tenth of the threshold inside it."""
    clear_after: int = 3
    """Updates in a row that must be well."""
    severity: Severity = "warn"
    when: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """Only for lines with one of these labels; a line that has no such label counts too."""
    name: str = ""

    def __post_init__(self) -> None:
        if (self.above is None) == (self.below is None):
            raise TelemetryError(f"the rule for {self.metric} needs one of above and below, such as above: 0.05")
        if self.lasting < 1 or self.clear_after < 1:
            raise TelemetryError(f"the rule for {self.metric} has for or clear_after below 1; they count updates")
        if self.severity not in SEVERITIES:
            raise TelemetryError(f"severity is {self.severity!r}; it is one of {', '.join(SEVERITIES)}")
        if self.clear is not None and not self.is_well(self.clear, at=self.threshold):
            raise TelemetryError(f"the rule for {self.metric} clears at {self.clear:g}, outside its own threshold")

    @property
    def threshold(self) -> float:
        """The number it fires at."""
        return cast(float, self.below if self.above is None else self.above)

    @property
    def title(self) -> str:
        """What it is called in an alert."""
        metric = self.metric.partition("|")[0]
        return self.name or f"{metric} {'above' if self.above is not None else 'below'} {self.threshold:g}"

    def is_breach(self, x: float) -> bool:
        """What is not finite is beyond every threshold."""
        return not math.isfinite(x) or (x > self.threshold if self.above is not None else x < self.threshold)

    def is_well(self, x: float, *, at: float | None = None) -> bool:
        """True where an open alert may begin to clear."""
        edge = self.clear if at is None else at
        if edge is None:
            margin = 0.1 * abs(self.threshold)
            edge = self.threshold - margin if self.above is not None else self.threshold + margin
        return math.isfinite(x) and (x <= edge if self.above is not None else x >= edge)

    def value(self, update: UpdateRecord) -> float | None:
        """The number of a line that this rule is about; None if it says nothing."""
        for label, allowed in self.when.items():
            if label in update.labels and update.labels[label] not in allowed:
                return None
        for name in self.metric.split("|"):
            if f"m.{name}" in update.nonfinite:
                return math.nan
            if name.startswith("episodes.") and update.episodes:
                found = getattr(update.episodes, name.removeprefix("episodes."), None)
            else:
                # A line that covers several updates is as bad as the worst of them.
                extreme = update.m_max if self.above is not None else update.m_min
                found = extreme.get(name, update.m.get(name))
            if found is not None:
                return float(found)
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A rule that fired, or is well again."""

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
    since: int | None = None
    first_bad: int = 0


class Alerts:
    """Every rule's state over a run; also tells its findings, numbers that are not finite, and a bad end."""

    def __init__(self, rules: Sequence[AlertRule]) -> None:
        self._rules = rules
        self._states = [_State() for _ in rules]
        self._nonfinite = _State()
        self.open: dict[str, Alert] = {}

    def take(self, record: Record) -> list[Alert]:
        """The alerts that a record makes: those that fire and those that resolve."""
        told: list[Alert] = []
        match record:
            case UpdateRecord():
                for rule, state in zip(self._rules, self._states, strict=True):
                    if (x := rule.value(record)) is not None:
                        told += self._step(rule, state, record, x, bad=rule.is_breach(x), well=rule.is_well(x))
                bad = any(name.startswith("m.") for name in record.nonfinite)
                told += self._step(_NONFINITE, self._nonfinite, record, math.nan, bad=bad, well=not bad)
            case FindingRecord():
                since = record.since_update or record.updates
                told.append(
                    _alert(record, f"{record.rule}: {record.title}", record.severity, None, record.status, since)
                )
            case EndRecord() if record.reason in ("error", "diverged"):
                said = f"the run ended: {record.reason}" + (f" ({record.message})" if record.message else "")
                told.append(_alert(record, said, "fatal", None, "open", record.updates))
            case _:
                pass
        for alert in told:
            if alert.status == "open":
                self.open[alert.title] = alert
            else:
                self.open.pop(alert.title, None)
        return told

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
    """The rules of a YAML or JSON file: a list, or {"rules": [list]}; each {metric, above | below, for, clear, …}."""
    import yaml

    try:
        raw: Any = yaml.safe_load(path.read_text())
    except FileNotFoundError as error:
        raise TelemetryError(f"there are no rules at {path}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise TelemetryError(f"{path} is no YAML: {' '.join(str(error).split())}") from error
    if isinstance(raw, dict):
        raw = cast(dict[str, Any], raw).get("rules")
    if not isinstance(raw, list) or not raw:
        raise TelemetryError(f"{path} has no list of rules; - {{metric: approx_kl, above: 0.05, for: 3}} is one")
    return [_rule(entry, f"{path}, rule {i}") for i, entry in enumerate(cast(list[Any], raw), 1)]


def _rule(entry: Any, where: str) -> AlertRule:
    if not isinstance(entry, dict) or "metric" not in entry:
        raise TelemetryError(f"{where} has no metric; {{metric: approx_kl, above: 0.05}} is a rule")
    given = cast(dict[str, Any], entry)
    if unknown := [str(name) for name in given if name not in _FIELDS]:
        raise TelemetryError(f"{where}: {', '.join(unknown)} unknown; a rule has {', '.join(_FIELDS)}")
    for name in ("above", "below", "clear", "for", "clear_after"):
        x = given.get(name)
        if x is not None and (isinstance(x, bool) or not isinstance(x, int | float)):
            raise TelemetryError(f"{where}: {name} is {x!r}; it is a number")
    raw = given.get("when") or {}
    if not isinstance(raw, dict):
        raise TelemetryError(f"{where}: when is {raw!r}; it is labels, such as {{data_mode: rollout}}")
    when = {
        str(k): [str(x) for x in cast(list[Any], v)] if isinstance(v, list) else [str(v)]
        for k, v in cast(dict[Any, Any], raw).items()
    }
    try:
        return AlertRule(
            metric=str(given["metric"]),
            above=given.get("above"),
            below=given.get("below"),
            lasting=int(given.get("for", 1)),
            clear=given.get("clear"),
            clear_after=int(given.get("clear_after", 3)),
            severity=given.get("severity", "warn"),
            when=when,
            name=str(given.get("name", "")),
        )
    except TelemetryError as error:
        raise TelemetryError(f"{where}: {error}") from error


def parse_rule(text: str) -> AlertRule:
    """Return the rule that a text such as `approx_kl>0.05` describes.

    `entropy<0.1:3` fires after three updates in a row, `loss>10:1:error` has a severity, and
    `queue_conflict_events<25 when data_mode=rollout,mixed` concerns only lines with one of these labels.
    """
    found = re.fullmatch(
        r"\s*([\w.|/-]+)\s*([<>])\s*([^:\s]+?)\s*(?::(\d+))?(?::(\w+))?(?:\s+when\s+(\w+)=([\w,-]+))?\s*", text
    )
    try:
        if found is None:
            raise ValueError
        x = float(found[3])
    except ValueError:
        raise TelemetryError(f"{text!r} is no rule; approx_kl>0.05, entropy<0.1:3 or loss>10:1:error is one") from None
    severity = cast(Severity, found[5] or "warn")
    above, below = (x, None) if found[2] == ">" else (None, x)
    when = {found[6]: found[7].split(",")} if found[6] else {}
    return AlertRule(
        metric=found[1], above=above, below=below, lasting=int(found[4] or 1), severity=severity, when=when
    )
