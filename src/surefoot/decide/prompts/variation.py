"""The result of a mutation: the new text, a description of the change, and its expected effect."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Change = Literal["increase", "decrease", "neutral"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Impact:
    """Expected direction of change per criterion."""

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
        """Return the variation with the field names of the TypeScript interface."""
        return {
            "text": self.text,
            "mutationType": self.mutation_type,
            "changeDescription": self.change_description,
            "expectedImpact": asdict(self.expected_impact),
            "metadata": self.metadata,
        }


def variation(prompt: str, text: str, mutation: str, change: str, impact: Impact, **metadata: Any) -> PromptVariation:
    """Return the variation `text` of `prompt`, with both lengths in its metadata."""
    metadata = {"originalLength": len(prompt), "newLength": len(text), **metadata}
    return PromptVariation(
        text=text, mutation_type=mutation, change_description=change, expected_impact=impact, metadata=metadata
    )
