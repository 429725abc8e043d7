"""The doctor: read a run's record, live or afterwards, and report what is wrong, root causes before consequences."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from surefoot.telemetry.doctor.findings import Finding, severity_rank
from surefoot.telemetry.doctor.metric_history import MetricHistory
from surefoot.telemetry.doctor.rules import Rule, RuleLevel, shipped_rules
from surefoot.telemetry.doctor.signals import Evidence
from surefoot.telemetry.reader import LineProblem, scan
from surefoot.telemetry.schema import EndRecord, Record, UpdateRecord


class Doctor:
    """Take records one by one. A finding opens when its sign has lasted, and is resolved when the sign is gone."""

    def __init__(self, rules: Sequence[Rule] | None = None) -> None:
        self.rules = shipped_rules() if rules is None else list(rules)
        self.history = MetricHistory()
        self._watches = [_Watch(rule) for rule in self.rules]
        self._findings: dict[str, Finding] = {}

    def observe(self, record: Record | LineProblem) -> list[Finding]:
        """Return the findings that this record changed: opened, graver, or resolved."""
        self.history.add(record)
        if not isinstance(record, UpdateRecord | EndRecord | LineProblem):
            return []
        changed: list[Finding] = []
        for watch in self._watches:
            before = self._findings.get(watch.rule.id)
            after = watch.check(self.history, before)
            if after is not None and after is not before:
                self._findings[watch.rule.id] = after
                changed.append(after)
        if changed:
            self._findings = {f.rule: f for f in self.findings()}
        return [self._findings[f.rule] for f in changed]

    def findings(self) -> list[Finding]:
        """Return all findings, the primary one first; of resolved ones, the last per rule."""
        return ranked(list(self._findings.values()), self.rules)


class LiveDoctor:
    """A recorder's mirror that examines a run while it trains. The run takes the changed findings and records them."""

    def __init__(self, rules: Sequence[Rule] | None = None, *, at_length: bool = False) -> None:
        self.doctor, self.at_length = Doctor(rules), at_length
        """`at_length`: notes include the causes, and findings of severity info are noted too."""
        self._changed: list[Finding] = []

    def catch_up(self, path: Path | str) -> None:
        """Read the existing record of a run that is resumed, without reporting its findings again."""
        for record in scan(path):
            self.doctor.observe(record)

    def write(self, record: Record) -> None:
        """Take one record."""
        self._changed += self.doctor.observe(record)

    def take(self) -> list[Finding]:
        """Return the findings that changed since the last call."""
        changed, self._changed = self._changed, []
        return changed

    def close(self) -> None:
        """Do nothing: nothing is buffered."""


class _Watch:
    """One rule, and in which of the last records its sign was present."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self._present = [deque[bool](maxlen=level.needs[1]) for level in rule.levels]
        self._absent = 0

    def check(self, history: MetricHistory, before: Finding | None) -> Finding | None:
        """Return the finding after one more record; `before` itself if nothing changed."""
        rule = self.rule
        # A run that ends by NaN may end before the warm-up is over.
        ended = history.end is not None and rule.sign.__name__ == "not_finite"
        if not ended and (history.updates < rule.warmup_updates or history.progress < rule.warmup_share):
            return before
        evidence: Evidence = None
        reached: RuleLevel | None = None
        for level, present in zip(rule.levels, self._present, strict=True):
            current = rule.sign(history, level.limits)
            present.append(current is not None)
            evidence = evidence or current
            if current is not None and reached is None and sum(present) >= level.needs[0]:
                reached, evidence = level, current
        self._absent = 0 if evidence is not None else self._absent + 1
        if before is not None and before.status == "open":
            if reached is not None and severity_rank(reached.severity) > severity_rank(before.severity):
                patch = patch_for(rule.patch, history)
                return replace(before, severity=reached.severity, evidence=evidence, patch=patch)
            over = self._absent >= rule.clears and not rule.once
            return replace(before, status="resolved") if over else before
        if reached is None or evidence is None:
            return before
        return Finding(
            rule=rule.id,
            severity=reached.severity,
            since_update=history.updates,
            since_env_steps=history.env_steps,
            title=rule.title,
            evidence=evidence,
            causes=list(rule.causes),
            patch=patch_for(rule.patch, history),
        )


def patch_for(patch: Mapping[str, Any], history: MetricHistory) -> dict[str, Any]:
    """Return the settings to change, as values: `times` multiplies the run's value; unchanged settings are left out."""
    values: dict[str, Any] = {}
    for knob, target in patch.items():
        # Under a schedule, its start: the value of now would be multiplied by the schedule twice. Not the first one of the
        # record either: a resumed run may have other settings than it began with.
        current: Any = history.knob(knob)
        if isinstance(current, dict):
            current = cast(dict[str, Any], current).get("start")
        if current is None and not math.isnan(history.first(knob)):
            current = history.first(knob)  # the log of another library, without settings
        if isinstance(target, dict):
            plan = cast(dict[str, float], target)
            if not isinstance(current, int | float) or isinstance(current, bool):
                continue
            value = current * plan["times"]
            value = min(max(value, plan.get("least", -math.inf)), plan.get("most", math.inf))
            number = int(value) if isinstance(current, int) else float(f"{value:.2g}")
            values[knob] = number if _falls_to_zero(history.knob(knob)) is None else f"lin_{number:g}"
        elif current != target:
            values[knob] = target
    return {knob: value for knob, value in values.items() if value != history.knob(knob)}


def _falls_to_zero(setting: Any) -> float | None:
    """Return the start of a linear schedule that ends at 0, which `lin_START` writes; None for anything else."""
    if not isinstance(setting, dict):
        return None
    schedule = cast(dict[str, Any], setting)
    return schedule["start"] if schedule.get("kind") == "linear" and schedule.get("end") == 0.0 else None


def ranked(findings: Sequence[Finding], rules: Sequence[Rule]) -> list[Finding]:
    """Return the findings with the one to start with marked and first; then by status, severity and the order of rules."""
    first, order = primary(findings, rules), {rule.id: i for i, rule in enumerate(rules)}
    marked = [replace(f, primary=f.rule == first) for f in findings]
    return sorted(marked, key=lambda f: (not f.primary, f.status, -severity_rank(f.severity), order[f.rule]))


def primary(findings: Iterable[Finding], rules: Sequence[Rule]) -> str | None:
    """Return the rule to start with: no other finding explains it, and it or a consequence of it is still open."""
    by_rule = {f.rule: f for f in findings}
    order = {rule.id: i for i, rule in enumerate(rules)}
    tree = consequences(by_rule.values(), rules)
    # The gravest open finding of each tree; 0 (info) needs no action.
    grave = {
        root: max((severity_rank(f.severity) for f in (by_rule[root], *tree[root]) if f.status == "open"), default=0)
        for root in tree
    }
    return min((root for root in tree if grave[root] > 0), key=lambda root: (-grave[root], order[root]), default=None)


def consequences(findings: Iterable[Finding], rules: Sequence[Rule]) -> dict[str, list[Finding]]:
    """Return {root: the findings that it explains, directly or through others}; a root is a rule nothing explains."""
    by_rule = {f.rule: f for f in findings}
    follows = {rule.id: rule.follows for rule in rules}
    parent = {name: _parent(by_rule[name], by_rule, follows) for name in by_rule}
    tree: dict[str, list[Finding]] = {name: [] for name, above in parent.items() if above is None}
    for name in by_rule:
        root, visited = name, {name}
        # `visited` ends a cycle of rules that name each other.
        while (above := parent[root]) is not None and above not in visited:
            root = above
            visited.add(root)
        if root != name:
            tree.setdefault(root, []).append(by_rule[name])
    return tree


def _parent(finding: Finding, findings: Mapping[str, Finding], follows: Mapping[str, Sequence[str]]) -> str | None:
    """Return the first rule in `follows` whose finding can explain this one: graver than info, and not much later.

    If two rules name each other, the earlier finding explains the later one.
    """
    for name in follows.get(finding.rule, ()):
        other = findings.get(name)
        if other is None or (other.severity == "info" and finding.severity != "info"):
            continue
        mutual = finding.rule in follows.get(name, ())
        # A cause may need more records than its consequence before it opens: twice as many updates, and 20 more.
        latest = finding.since_update - 1 if mutual else 2 * finding.since_update + 20
        if other.since_update <= latest:
            return name
    return None


@dataclass(frozen=True, slots=True)
class Examination:
    """The result of examining a record."""

    findings: list[Finding]
    """The primary one first."""
    rules: list[Rule]
    updates: int
    env_steps: int
    final_return: float | None
    """Mean of about the last hundred training episodes; None if none ended."""
    thriving: bool = False
    """The returns are clearly better than the untrained policy's, and near their best."""

    @property
    def tree(self) -> dict[str, list[Finding]]:
        """{root: the findings that it explains}."""
        return consequences(self.findings, self.rules)


def examine(path: Path | str, rules: Sequence[Rule] | None = None) -> Examination:
    """Examine the record of a run directory or a file, from its first line to its last."""
    return examine_records(scan(path), rules)


def examine_records(records: Iterable[Record | LineProblem], rules: Sequence[Rule] | None = None) -> Examination:
    """Examine records, from the first to the last."""
    doctor = Doctor(rules)
    for record in records:
        doctor.observe(record)
    history = doctor.history
    final = None if math.isnan(history.returns.smooth) else history.returns.smooth
    return Examination(doctor.findings(), doctor.rules, history.updates, history.env_steps, final, history.thriving)


def seed_spread(finals: Sequence[float], rules: Sequence[Rule] | None = None) -> Finding | None:
    """Apply R25 to the final returns of several seeds: their interquartile range is large compared with their median."""
    rule = next((r for r in (shipped_rules() if rules is None else rules) if r.id == "R25"), None)
    if rule is None or len(finals) < 3:
        return None
    low, middle, high = (float(x) for x in np.percentile(finals, (25, 50, 75)))
    spread = (high - low) / max(abs(middle), 1e-9)
    if spread <= rule.levels[0].limits["limit"]:
        return None
    evidence = {"seed_spread": spread, "median": middle, "seeds": float(len(finals))}
    causes = list(rule.causes)
    return Finding(rule="R25", severity=rule.levels[0].severity, title=rule.title, evidence=evidence, causes=causes)
