"""The Config of a standalone program: one field per parameter that the program reads, below the comment of its node."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from surefoot.errors import GraphError
from surefoot.graph.export.writing import Names, annotation, literal
from surefoot.graph.schedule import Firing, Schedule
from surefoot.graph.spec.params import params_to_json
from surefoot.learn.schedule import Cosine, Linear

_ENDS = {"linear": "end", "cosine": "cosine_end"}
"""{kind of schedule: suffix of the field that holds its last value}"""


class Fields:
    """Field names of parameters: the parameter's name if it is free, else with the node's id as a prefix."""

    def __init__(self, plan: Schedule, named: Sequence[Firing], prefixed: Sequence[Firing]) -> None:
        self.plan, self.nodes = plan, (*named, *prefixed)
        self.names = Names("seed", "total_steps", "out", "resume")
        self.fields: dict[tuple[str, str], str] = {}
        """{(node, parameter): field of Config}"""
        for firing in self.nodes:
            for param in firing.declared.params:
                free = param.name not in self.names.used and firing not in prefixed
                self.fields[firing.id, param.name] = self.names.new(param.name if free else f"{firing.id}_{param.name}")

    def read(self, firing: Firing, param: str) -> str:
        """Return the expression that reads a parameter; a schedule is a function of `progress`."""
        name = f"config.{self.fields[firing.id, param]}"
        match firing.params[param]:
            case Linear():
                return f"(1.0 - progress) * {name} + progress * {name}_end"
            case Cosine():
                left = "(0.5 + 0.5 * math.cos(math.pi * progress))"
                return f"{left} * {name} + (1.0 - {left}) * {name}_cosine_end"
            case int() | float() | str() | tuple() | None:
                return name
            case _:
                raise GraphError(
                    f"{firing.id}: a standalone program has linear and cosine schedules only; use lin_… or cos_…, or export this "
                    "graph as a script"
                )

    def every(self, watchers: Sequence[Firing], type: str, otherwise: int) -> str:
        """Return the expression for `every` of the node of this type; `otherwise` if there is none."""
        node = next((each for each in watchers if each.declared.name == type), None)
        return str(otherwise) if node is None else self.read(node, "every")

    def config(self, order: Sequence[Firing], body: str) -> str:
        """Return the class with the fields that `body` reads, and the comments of all nodes."""
        run = self.plan.run
        lines = [
            "@dataclass(frozen=True, kw_only=True)",
            "class Config:",
            '    """Every field is a command-line option."""',
        ]
        lines += ["", f"    seed: int = {run.seed}", f"    total_steps: int = {run.total_steps}"]
        for firing in order:
            lines.append(f"    # [node {firing.id}] {firing.declared.name}")
            lines += [
                f"    {name}: {annotation(value)} = {literal(value)}"
                for name, (_, _, value) in self.values(firing).items()
                if re.search(rf"config\.{name}\b", body)
            ]
        return "\n".join(lines)

    def values(self, firing: Firing) -> dict[str, tuple[str, str, Any]]:
        """Return {field: (parameter, part of it, value)}; a schedule has two fields, `start` and `end`."""
        fields: dict[str, tuple[str, str, Any]] = {}
        for param, value in params_to_json(firing.declared, firing.params).items():
            name = self.fields.get((firing.id, param), "")
            if isinstance(value, dict) and value.get("kind") in _ENDS:
                fields[name] = param, "start", value["start"]
                fields[f"{name}_{_ENDS[value['kind']]}"] = param, "end", value["end"]
            elif name:
                fields[name] = param, "", tuple(value) if isinstance(value, list) else value
        return fields


def one_line(text: str) -> str:
    """Return a name without the characters that would end a docstring."""
    return " ".join(text.replace('"', "'").replace("\\", "/").split())[:80] or "graph"
