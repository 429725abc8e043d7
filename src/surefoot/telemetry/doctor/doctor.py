"""Reads a run's record, live or afterwards, and says what is wrong with it: the beginning first, what follows below."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from surefoot.telemetry.doctor.findings import Finding, gravity
from surefoot.telemetry.doctor.metric_history import Chart
from surefoot.telemetry.doctor.rules import Rule, RuleLevel, shipped_rules
from surefoot.telemetry.doctor.signals import Evidence
from surefoot.telemetry.reader import LineProblem, scan
from surefoot.telemetry.schema import EndRecord, Record, UpdateRecord


class Doctor:
    """Takes records one by one; a finding opens when its sign has lasted, and is resolved when it has been gone."""

    def __init__(self, rules: Sequence[Rule] | None = None) -> None:
        self.rules = shipped_rules() if rules is None else list(rules)
        self.chart = Chart()
        self._watches = [_Watch(rule) for rule in self.rules]
        self._order = {rule.id: i for i, rule in enumerate(self.rules)}
        self._found: dict[str, Finding] = {}

    def see(self, record: Record | LineProblem) -> list[Finding]:
        """What this record changed: findings that opened, became graver, or are resolved."""
        self.chart.add(record)
        if not isinstance(record, UpdateRecord | EndRecord | LineProblem):
            return []
        changed: list[Finding] = []
        for watch in self._watches:
            before = self._found.get(watch.rule.id)
            after = watch.look(self.chart, before)
            if after is not None and after is not before:
                self._found[watch.rule.id] = after
                changed.append(after)
        if changed:
            self._found = {f.rule: f for f in self.findings()}
        return [self._found[f.rule] for f in changed]

    def findings(self) -> list[Finding]:
        """All so far, the primary one first; of those resolved, the last of their rule."""
        found = list(self._found.values())
        first = primary(found, self.rules)
        marked = [replace(f, primary=f.rule == first) for f in found]
        return sorted(marked, key=lambda f: (not f.primary, f.status, -gravity(f.severity), self._order[f.rule]))


class _Watch:
    """One rule, and how often its sign was there lately."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self._seen = [deque[bool](maxlen=level.needs[1]) for level in rule.levels]
        self._absent = 0

    def look(self, chart: Chart, before: Finding | None) -> Finding | None:
        """The finding as it is after one more record; `before` itself if nothing changed."""
        rule = self.rule
        late = chart.end is not None and rule.sign.__name__ == "not_finite"
        if not late and (chart.updates < rule.warmup_updates or chart.progress < rule.warmup_share):
            return before
        there: Evidence = None
        reached: RuleLevel | None = None
        for level, seen in zip(rule.levels, self._seen, strict=True):
            evidence = rule.sign(chart, level.limits)
            seen.append(evidence is not None)
            there = there or evidence
            if evidence is not None and reached is None and sum(seen) >= level.needs[0]:
                reached, there = level, evidence
        self._absent = 0 if there is not None else self._absent + 1
        if before is not None and before.status == "open":
            if reached is not None and gravity(reached.severity) > gravity(before.severity):
                return replace(before, severity=reached.severity, evidence=there, patch=patch_for(rule.patch, chart))
            over = self._absent >= rule.clears and not rule.once
            return replace(before, status="resolved") if over else before
        if reached is None or there is None:
            return before
        return Finding(
            rule=rule.id,
            severity=reached.severity,
            since_update=chart.updates,
            since_env_steps=chart.env_steps,
            title=rule.title,
            evidence=there,
            causes=list(rule.causes),
            patch=patch_for(rule.patch, chart),
        )


def patch_for(patch: Mapping[str, Any], chart: Chart) -> dict[str, Any]:
    """The knobs to turn, as values: `times` is of what the run has now; a knob that stands there already is left out."""
    found: dict[str, Any] = {}
    for knob, wish in patch.items():
        here = chart.now(knob)
        have: Any = chart.knob(knob) if math.isnan(here) else here
        if isinstance(wish, dict):
            plan = cast(dict[str, float], wish)
            if not isinstance(have, int | float) or isinstance(have, bool):
                continue
            value = have * plan["times"]
            value = min(max(value, plan.get("least", -math.inf)), plan.get("most", math.inf))
            found[knob] = int(value) if isinstance(have, int) else float(f"{value:.2g}")
        elif have != wish:
            found[knob] = wish
    return {knob: value for knob, value in found.items() if value != chart.knob(knob)}


def primary(findings: Iterable[Finding], rules: Sequence[Rule]) -> str | None:
    """The rule to begin with: no other finding explains it, and it or something it explains is still open."""
    found = {f.rule: f for f in findings}
    order = {rule.id: i for i, rule in enumerate(rules)}
    tree = consequences(found.values(), rules)
    alive = {root: [f for f in (found[root], *tree[root]) if f.status == "open"] for root in tree}

    def weight(root: str) -> tuple[int, int]:
        return -max(gravity(f.severity) for f in alive[root]), order[root]

    roots = [root for root in tree if alive[root] and max(gravity(f.severity) for f in alive[root]) > 0]
    return min(roots, key=weight, default=None)


def consequences(findings: Iterable[Finding], rules: Sequence[Rule]) -> dict[str, list[Finding]]:
    """{rule of a finding that nothing explains: the findings that it explains, directly or by way of others}."""
    found = {f.rule: f for f in findings}
    follows = {rule.id: rule.follows for rule in rules}
    parent = {name: _parent(found[name], found, follows) for name in found}
    tree: dict[str, list[Finding]] = {name: [] for name, above in parent.items() if above is None}
    for name in found:
        root, walked = name, {name}
        while (above := parent[root]) is not None and above not in walked:
            root = above
            walked.add(root)
        if root != name:
            tree.setdefault(root, []).append(found[name])
    return tree


def _parent(finding: Finding, found: Mapping[str, Finding], follows: Mapping[str, Sequence[str]]) -> str | None:
    """The first rule in `follows` whose finding can explain this one: more than advice, and not from long after.

    Where two rules name each other, the earlier finding explains the later one.
    """
    for name in follows.get(finding.rule, ()):
        other = found.get(name)
        if other is None or (other.severity == "info" and finding.severity != "info"):
            continue
        mutual = finding.rule in follows.get(name, ())
        latest = finding.since_update - 1 if mutual else 2 * finding.since_update + 20
        if other.since_update <= latest:
            return name
    return None


@dataclass(frozen=True, slots=True)
class Examination:
    """A whole record looked at."""

    findings: list[Finding]
    """The primary one first."""
    rules: list[Rule]
    updates: int
    env_steps: int
    final_return: float | None
    """Mean of about the last hundred training episodes; None if none ended."""

    @property
    def tree(self) -> dict[str, list[Finding]]:
        """{root: what it explains}."""
        return consequences(self.findings, self.rules)


def examine(path: Path | str, rules: Sequence[Rule] | None = None) -> Examination:
    """Look at the record of a run directory or of a file, from its first line to its last."""
    doctor = Doctor(rules)
    for record in scan(path):
        doctor.see(record)
    chart = doctor.chart
    final = None if math.isnan(chart.returns.smooth) else chart.returns.smooth
    return Examination(doctor.findings(), doctor.rules, chart.updates, chart.env_steps, final)


def seed_spread(finals: Sequence[float], rules: Sequence[Rule] | None = None) -> Finding | None:
    """R25 over the final returns of several seeds: the middle half of them is wide against their median."""
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
