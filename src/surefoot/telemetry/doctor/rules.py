"""The doctor's rules, read from YAML: limits and texts, each with the name of its sign. A rule file contains no code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

import yaml

from surefoot.errors import ConfigError
from surefoot.telemetry.doctor.cause_signals import SIGNS
from surefoot.telemetry.doctor.findings import SEVERITIES, Severity, severity_rank
from surefoot.telemetry.doctor.signals import Limits, Sign

SYMPTOMS = ("not improving", "unstable", "high variance", "slow", "broken")
# Version of the rule file's format.
VERSION = 1
_KNOWN = {"title", "sign", "levels", "symptom", "warmup", "clears", "once", "causes", "patch", "follows", "needs"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleLevel:
    """The limits of a sign at one severity."""

    severity: Severity
    limits: Limits
    """The numbers the sign compares with."""
    needs: tuple[int, int] = (1, 1)
    """(k, n): the sign was present in k of the last n records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One thing that can be wrong with a run."""

    id: str
    title: str
    sign: Sign
    levels: tuple[RuleLevel, ...]
    symptom: str = "not improving"
    warmup_updates: int = 10
    warmup_share: float = 0.02
    """The rule is checked after this many updates and this share of the run."""
    clears: int = 5
    """Records without the sign after which the finding is resolved."""
    once: bool = False
    """The finding stays open, because later records cannot undo what happened."""
    causes: tuple[str, ...] = ()
    patch: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """{setting: value}, or {setting: {times: factor, least: …, most: …}} of the run's value."""
    follows: tuple[str, ...] = ()
    """Rules whose findings explain this one; in a file also patterns of ids, such as E*."""


@cache
def _shipped() -> tuple[Rule, ...]:
    text = files("surefoot.telemetry.doctor").joinpath("rules.yaml").read_text(encoding="utf-8")
    return tuple(_expanded(_read(text, "rules.yaml")))


def shipped_rules() -> list[Rule]:
    """Return the rules of the package, likelier root causes first."""
    return list(_shipped())


def read_rules(path: Path | str, base: Sequence[Rule] | None = None) -> list[Rule]:
    """Return `base` (the shipped rules) and those of a YAML file, which replace rules with the same id."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as why:
        raise ConfigError(f"cannot read rules from {path}: {why}") from why
    rules = [*(shipped_rules() if base is None else base), *_read(text, str(path))]
    return _expanded(list({rule.id: rule for rule in rules}.values()))


def _expanded(rules: list[Rule]) -> list[Rule]:
    """Return the rules with patterns in `follows`, such as "E*", replaced by the ids that they match."""
    ids = [rule.id for rule in rules]

    def matching(rule: Rule, name: str) -> list[str]:
        return [id for id in ids if id != rule.id and fnmatchcase(id, name)] if "*" in name else [name]

    return [replace(rule, follows=tuple(id for name in rule.follows for id in matching(rule, name))) for rule in rules]


def _read(text: str, where: str) -> list[Rule]:
    try:
        loaded: Any = yaml.safe_load(text)
    except yaml.YAMLError as why:
        raise ConfigError(f"{where} is not YAML: {' '.join(str(why).split())}") from why
    if not isinstance(loaded, dict) or not isinstance(cast(dict[str, Any], loaded).get("rules"), dict):
        raise ConfigError(f"{where} must be a mapping with `version: {VERSION}` and `rules: {{ID: …}}`")
    content = cast(dict[str, Any], loaded)
    if content.get("version", VERSION) != VERSION:
        raise ConfigError(f"{where} has version {content['version']!r}; this doctor reads version {VERSION}")
    return [_rule(str(name), entry, f"{where}: {name}") for name, entry in content["rules"].items()]


def _rule(name: str, entry: Any, where: str) -> Rule:
    if not isinstance(entry, dict):
        raise ConfigError(f"{where} is {entry!r}; it must be a mapping with a title, a sign and levels")
    fields = cast(dict[str, Any], entry)
    if unknown := sorted(set(fields) - _KNOWN):
        raise ConfigError(f"{where} has an unknown key {unknown[0]!r}; known keys are {', '.join(sorted(_KNOWN))}")
    if missing := [key for key in ("title", "sign", "levels") if key not in fields]:
        raise ConfigError(f"{where} has no {missing[0]}; a rule needs a title, a sign and levels")
    if fields["sign"] not in SIGNS:
        raise ConfigError(f"{where}: there is no sign {fields['sign']!r}; use one of {', '.join(SIGNS)}")
    symptom = fields.get("symptom", "not improving")
    if symptom not in SYMPTOMS:
        raise ConfigError(f"{where}: symptom is {symptom!r}; it must be one of {', '.join(SYMPTOMS)}")
    warmup: dict[str, Any] = fields.get("warmup") or {}
    return Rule(
        id=name,
        title=fields["title"],
        sign=SIGNS[fields["sign"]],
        levels=_levels(fields["levels"], fields.get("needs", (1, 1)), where),
        symptom=symptom,
        warmup_updates=int(warmup.get("updates", 10)),
        warmup_share=float(warmup.get("share", 0.02)),
        clears=int(fields.get("clears", 5)),
        once=bool(fields.get("once", False)),
        causes=tuple(fields.get("causes", ())),
        patch=fields.get("patch") or {},
        follows=tuple(fields.get("follows", ())),
    )


def _levels(entry: Any, needs: Any, where: str) -> tuple[RuleLevel, ...]:
    if not isinstance(entry, dict) or not entry:
        raise ConfigError(f"{where}: levels is {entry!r}; it must be {{warn: {{limit: 1}}}}, by severity")
    levels: list[RuleLevel] = []
    for severity, limits in cast(dict[Any, Any], entry).items():
        if severity not in SEVERITIES:
            raise ConfigError(f"{where}: {severity!r} is not a severity; use one of {', '.join(SEVERITIES)}")
        numbers: dict[str, Any] = dict(limits or {})
        k, n = (int(x) for x in numbers.pop("needs", needs))
        if not 1 <= k <= n:
            raise ConfigError(f"{where}: needs is [{k}, {n}]; it must be [k, n] with 1 ≤ k ≤ n")
        levels.append(RuleLevel(severity=severity, limits=numbers, needs=(k, n)))
    return tuple(sorted(levels, key=lambda level: -severity_rank(level.severity)))
