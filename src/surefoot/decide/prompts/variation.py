"""What a mutation gives: the new text, what was done, and what to expect of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Change = Literal["increase", "decrease", "neutral"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Impact:
    """Which way a mutation is expected to move what matters."""

    quality: Change = "neutral"
    cost: Change = "neutral"
    latency: Change = "neutral"
    reliability: Change = "neutral"


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptVariation:
    """A prompt after one mutation."""

    text: str
    mutation_type: str
    change_description: str
    expected_impact: Impact
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])

    def to_json(self) -> dict[str, Any]:
        """With the names the TypeScript interface uses."""
        impact = self.expected_impact
        return {
            "text": self.text,
            "mutationType": self.mutation_type,
            "changeDescription": self.change_description,
            "expectedImpact": {n: getattr(impact, n) for n in ("quality", "cost", "latency", "reliability")},
            "metadata": self.metadata,
        }


def lengths(before: str, after: str) -> dict[str, int]:
    """Characters before and after, as every mutation reports them."""
    return {"originalLength": len(before), "newLength": len(after)}
