"""What an examination of a run found: evidence, since when, why it may be so, and which knob to turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Severity = Literal["info", "warn", "error", "fatal"]
Status = Literal["open", "resolved"]

SEVERITIES: tuple[Severity, ...] = ("info", "warn", "error", "fatal")
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


def gravity(severity: Severity) -> int:
    """0 for info … 3 for fatal, to compare by."""
    return SEVERITIES.index(severity)
