"""The result of a check: findings, and what was inferred of every node."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from surefoot.errors import GraphError
from surefoot.graph.spec.model import End, Graph
from surefoot.graph.spec.types import Clock, Type


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphFinding:
    """One thing that is wrong, or that costs something."""

    level: str
    """error, or lint."""
    code: str
    node: str
    port: str = ""
    message: str = ""
    nodes: tuple[str, ...] = ()
    """Others that it is pinned on."""

    def __str__(self) -> str:
        at = f"{self.node}.{self.port}" if self.port else self.node
        return f"{self.level}: {at}: {self.message}" if at else f"{self.level}: {self.message}"

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("level", "code", "node", "port", "message")} | {
            "nodes": list(self.nodes)
        }


@dataclass(slots=True)
class Checked:
    """A graph that was looked at: what was found, and all that follows from it."""

    graph: Graph
    flat: Graph
    """Without sub-graphs."""
    findings: list[GraphFinding] = field(default_factory=list[GraphFinding])
    order: list[str] = field(default_factory=list[str])
    """In which nodes fire within a tick."""
    params: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """Of each node, defaults filled in."""
    types: dict[End, Type] = field(default_factory=dict[End, Type])
    """Of each output."""
    clocks: dict[End, Clock] = field(default_factory=dict[End, Clock])
    fires: dict[str, Clock] = field(default_factory=dict[str, Clock])

    @property
    def errors(self) -> list[GraphFinding]:
        return [each for each in self.findings if each.level == "error"]

    @property
    def lints(self) -> list[GraphFinding]:
        return [each for each in self.findings if each.level == "lint"]

    def require(self) -> Checked:
        """Itself; raises with the first errors if there are any."""
        if self.errors:
            first = "; ".join(str(each).removeprefix("error: ") for each in self.errors[:3])
            more = f" (and {len(self.errors) - 3} more)" if len(self.errors) > 3 else ""
            raise GraphError(f"{first}{more}")
        return self

    def to_json(self) -> dict[str, Any]:
        """For the editor: findings, and what is known of each output."""
        return {
            "ok": not self.errors,
            "findings": [each.to_json() for each in self.findings],
            "order": self.order,
            "outputs": {
                str(end): {"type": type.to_json(), "clock": str(self.clocks.get(end, ""))}
                for end, type in sorted(self.types.items())
            },
        }
