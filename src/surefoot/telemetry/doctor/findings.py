"""What an examination of a run found: evidence, since when, why it may be so, and which knob to turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from surefoot.telemetry.schema import Severity, Status

SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""From the lightest to the gravest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is, or was, wrong."""

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
    """{knob: value} that may mend it."""
    primary: bool = False
    """Where to begin: nothing else that was found explains it, and nothing graver stands beside it."""

    def to_json(self) -> dict[str, Any]:
        """Everything, as JSON values."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Finding:
        """What `to_json` wrote."""
        return cls(**{name: data[name] for name in cls.__slots__ if name in data})


def patch_text(patch: Mapping[str, Any]) -> str:
    """As it is typed after `surefoot train ENV`."""
    return " ".join(f"--set {knob}={value_text(value)}" for knob, value in patch.items())


def value_text(value: Any) -> str:
    """A knob's value as it is typed."""
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)


def sentence(finding: Finding, *, causes: bool = False) -> str:
    """A finding in one line, for a log; with what may be behind it, if asked for."""
    if finding.status == "resolved":
        return f"doctor: {finding.rule} is over: {finding.title}"
    evidence = ", ".join(f"{name} {x:.3g}" for name, x in list(finding.evidence.items())[:2])
    remedy = f"; try {patch_text(finding.patch)}" if finding.patch else ""
    told = f"doctor: {finding.severity} {finding.rule}: {finding.title}{f' ({evidence})' if evidence else ''}"
    behind = f"; perhaps {', or '.join(finding.causes)}" if causes and finding.causes else ""
    return told + behind + remedy


def gravity(severity: Severity) -> int:
    """0 for info … 3 for fatal, to compare by."""
    return SEVERITIES.index(severity)
