"""The Config of a program that stands alone: one field for each parameter that it reads, under its node's comment."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from surefoot.errors import GraphError
from surefoot.graph.export.names import Names
from surefoot.graph.export.writing import annotation, literal
from surefoot.graph.schedule import Firing, Schedule
from surefoot.graph.spec.params import params_to_json
from surefoot.learn.schedule import Cosine, Linear


class Fields:
    """Names the parameters of nodes: by themselves where that is free, else behind the node's name, as those of `prefixed`."""

    def __init__(self, plan: Schedule, named: Sequence[Firing], prefixed: Sequence[Firing]) -> None:
        self.plan = plan
        self.names = Names("seed", "total_steps", "out", "resume")
        self.fields: dict[tuple[str, str], str] = {}
        """{(node, parameter): field of Config}"""
        for firing in (*named, *prefixed):
            for param in firing.declared.params:
                free = param.name not in self.names.taken and firing not in prefixed
                self.fields[firing.id, param.name] = self.names.new(param.name if free else f"{firing.id}_{param.name}")

    def name(self, firing: Firing, param: str) -> str:
        """The field of a parameter."""
        return self.fields[firing.id, param]

    def of(self, firing: Firing) -> dict[str, str]:
        """{parameter: field} of a node, to fill a piece with."""
        return {param.name: self.name(firing, param.name) for param in firing.declared.params}

    def config(self, order: Sequence[Firing], body: str) -> str:
        """The fields that `body` reads; what else was set on a node stands in its comment, so that nothing is lost."""
        run = self.plan.run
        lines = [
            "@dataclass(frozen=True, kw_only=True)",
            "class Config:",
            '    """Every field is an option on the command line."""',
            "",
        ]
        lines += [f"    seed: int = {run.seed}", f"    total_steps: int = {run.total_steps}"]
        if run.path != "auto":
            lines.append(f"    # [run] {json.dumps({'path': run.path})}")
        for firing in order:
            lines += self._of_node(firing, body)
        return "\n".join(lines)

    def _of_node(self, firing: Firing, body: str) -> list[str]:
        node = self.plan.graph.nodes[firing.id]
        shown, rest = params_to_json(firing.declared, firing.params), dict[str, Any]()
        lines: list[str] = []
        for param in firing.declared.params:
            name = self.fields.get((firing.id, param.name), "")
            mark = "" if param.name in node.params else "  # default"
            values = _values(name, shown[param.name])
            if name and all(re.search(rf"config\.{each}\b", body) for each in values):
                lines += [f"    {each}: {annotation(value)} = {literal(value)}{mark}" for each, value in values.items()]
            elif param.name in node.params:
                rest[param.name] = shown[param.name]
        at = self.plan.graph.layout.get(firing.id)
        where = "" if at is None else f" @ {at[0]:g},{at[1]:g}"
        also = f" {json.dumps(rest)}" if rest else ""
        return [f"    # [node {firing.id}] {firing.declared.name}{where}{also}", *lines]

    def every(self, watchers: Sequence[Firing], type: str, otherwise: int) -> str:
        """How often a node of this type looks; `otherwise` where there is none."""
        found = next((each for each in watchers if each.declared.name == type), None)
        return str(otherwise) if found is None else f"config.{self.name(found, 'every')}"


def _values(name: str, shown: Any) -> dict[str, Any]:
    """{field: value} of a parameter: one, or two where it moves from one value to another over the run."""
    if isinstance(shown, dict) and shown.get("kind") in ("linear", "cosine"):
        tail = "end" if shown["kind"] == "linear" else "cosine_end"
        return {name: shown["start"], f"{name}_{tail}": shown["end"]}
    return {name: tuple(shown) if isinstance(shown, list) else shown}


def at_progress(knob: Any, field: str, id: str) -> str:
    """How a value that may move over the run is written."""
    match knob:
        case Linear():
            return f"(1.0 - progress) * config.{field} + progress * config.{field}_end"
        case Cosine():
            left = "(0.5 + 0.5 * math.cos(math.pi * progress))"
            return f"{left} * config.{field} + (1.0 - {left}) * config.{field}_cosine_end"
        case int() | float():
            return f"config.{field}"
        case _:
            raise GraphError(
                f"{id}: a schedule of steps or points does not stand alone; use lin_… or cos_…, or export as a script"
            )


def one_line(text: str) -> str:
    """A name as the first line of a docstring may have it."""
    return " ".join(text.replace('"', "'").replace("\\", "/").split())[:80] or "graph"
