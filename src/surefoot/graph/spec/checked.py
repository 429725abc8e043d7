"""The result of `check`: findings, and what was inferred about every node."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from surefoot.errors import GraphError
from surefoot.graph.spec.model import End, Graph
from surefoot.graph.spec.types import Clock, Type


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphFinding:
    """An error or a warning about a graph."""

    level: str
    """error or lint."""
    code: str
    node: str
    port: str = ""
    message: str = ""
    nodes: tuple[str, ...] = ()
    """Other nodes that the editor marks, such as those of a cycle."""

    def __str__(self) -> str:
        place = f"{self.node}.{self.port}" if self.port else self.node
        return f"{self.level}: {place}: {self.message}" if place else f"{self.level}: {self.message}"


@dataclass(slots=True)
class Checked:
    """A checked graph: its findings and, as far as there are no errors, everything that was inferred."""

    graph: Graph
    flat: Graph
    """The graph without sub-graphs."""
    findings: list[GraphFinding] = field(default_factory=list[GraphFinding])
    order: list[str] = field(default_factory=list[str])
    """Firing order within a tick."""
    params: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """Parameters of each node with defaults filled in."""
    types: dict[End, Type] = field(default_factory=dict[End, Type])
    """Types of the outputs."""
    clocks: dict[End, Clock] = field(default_factory=dict[End, Clock])
    """Clocks of the outputs."""
    fires: dict[str, Clock] = field(default_factory=dict[str, Clock])
    """Clocks of the nodes."""

    @property
    def errors(self) -> list[GraphFinding]:
        return [each for each in self.findings if each.level == "error"]

    @property
    def lints(self) -> list[GraphFinding]:
        return [each for each in self.findings if each.level == "lint"]

    def require(self) -> Checked:
        """Return self; raise `GraphError` with the first errors if there are any."""
        if self.errors:
            # Three errors show a pattern; `surefoot graph check` prints all of them.
            first = "; ".join(str(each).removeprefix("error: ") for each in self.errors[:3])
            more = f" (and {len(self.errors) - 3} more)" if len(self.errors) > 3 else ""
            raise GraphError(f"{first}{more}")
        return self

    def to_json(self) -> dict[str, Any]:
        """Return findings, firing order, and type and clock of each output, for the editor."""
        return {
            "ok": not self.errors,
            "findings": [asdict(each) for each in self.findings],
            "order": self.order,
            "outputs": {
                str(end): {"type": type.to_json(), "clock": str(self.clocks.get(end, ""))}
                for end, type in sorted(self.types.items())
            },
        }
