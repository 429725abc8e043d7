"""A finding of the doctor: evidence, start, possible causes, and settings that may fix it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from surefoot.telemetry.schema import Severity, Status

SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""From the lightest to the gravest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One problem that is, or was, present."""

    rule: str
    severity: Severity
    status: Status = "open"
    since_update: int = 0
    since_env_steps: int = 0
    title: str
    evidence: dict[str, float] = field(default_factory=dict[str, float])
    causes: list[str] = field(default_factory=list[str])
    """Likeliest first."""
    patch: dict[str, Any] = field(default_factory=dict[str, Any])
    """{setting: value} that may fix it."""
    primary: bool = False
    """Start with this one: no other finding explains it, and no other root is graver."""

    def to_json(self) -> dict[str, Any]:
        """Return all fields as JSON values."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Finding:
        """Return the finding that `to_json` wrote."""
        return cls(**{name: data[name] for name in cls.__slots__ if name in data})


def patch_text(patch: Mapping[str, Any]) -> str:
    """Return the settings as arguments of `surefoot train ENV`."""
    return " ".join(f"--set {knob}={value_text(value)}" for knob, value in patch.items())


def value_text(value: Any) -> str:
    """Return a setting's value as `--set` reads it."""
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)


def sentence(finding: Finding, *, causes: bool = False) -> str:
    """Return a finding as one line of a log; `causes` adds the possible causes."""
    if finding.status == "resolved":
        return f"doctor: {finding.rule} is resolved: {finding.title}"
    evidence = ", ".join(f"{name} {x:.3g}" for name, x in list(finding.evidence.items())[:2])
    text = f"doctor: {finding.severity} {finding.rule}: {finding.title}{f' ({evidence})' if evidence else ''}"
    if causes and finding.causes:
        text += f"; possible causes: {', or '.join(finding.causes)}"
    return text + (f"; try {patch_text(finding.patch)}" if finding.patch else "")


def severity_rank(severity: Severity) -> int:
    """Return 0 for info … 3 for fatal, for comparisons."""
    return SEVERITIES.index(severity)
