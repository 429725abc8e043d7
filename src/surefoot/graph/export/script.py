"""Export as a script that imports surefoot: one comment per node, nodes fired in the order of the schedule.

If no node looks into a rollout, the six nodes of the plain loop become one `Rollouts`, run by the library's collector.
"""

from __future__ import annotations

from typing import Any

from surefoot.graph.export.block import with_graph
from surefoot.graph.export.writing import Names, annotation, code_function, literal, tidy, wrapped
from surefoot.graph.schedule import Firing, Input, Schedule, runtime_of, schedule
from surefoot.graph.spec.checked import Checked
from surefoot.graph.spec.model import ABSENT, Delay, End, Graph
from surefoot.graph.spec.params import params_to_json
from surefoot.graph.spec.types import ONCE
from surefoot.graph.wiring import plain_roles

RUNTIME = "surefoot.graph.runtime"


def to_script(graph: Graph | Checked, *, fuse: bool = True) -> str:
    """Return the text of the script.

    Args:
        graph: The graph, checked or not.
        fuse: Run the plain loop with the library's collector; False fires every node in every tick.
    """
    plan = schedule(graph)
    return with_graph(_Writer(plan, plain_roles(plan) if fuse else None).text(), plan.checked.graph)


class _Writer:
    def __init__(self, plan: Schedule, roles: dict[str, str] | None) -> None:
        self.plan, self.roles = plan, roles
        self.by_id = {each.id: each for each in plan.firings}
        self.classes: dict[str, tuple[str, str]] = {}
        for each in plan.firings:
            module, _, name = each.declared.runtime.partition(":")
            if each.declared.name != "Code":
                self.classes[each.declared.name] = (RUNTIME if module.startswith(RUNTIME) else module, name)
        self.names = Names(*(name for _, name in self.classes.values()), "Rollouts", "ticks_for", "node_seed")
        self.node_names = {each.id: self.names.new(each.id) for each in plan.firings}
        self.fields: list[tuple[str, str, str]] = []
        """(name, annotation, value) of Config."""
        self.imports: dict[str, set[str]] = {}
        # Outputs that nobody reads are assigned to _.
        self.read = {i.source for f in plan.firings for i in f.inputs if i.source is not None}
        self.vars = {
            End(each.id, name): self.names.new(f"{each.id}_{name}")
            for each in plan.firings
            for name in each.outputs
            if End(each.id, name) in self.read
        }
        self.registers: dict[tuple[str, str], str] = {}
        self.carried: dict[str, tuple[End, Delay | None, bool]] = {}
        """{register: (source, delay, whether it holds its last value)}"""
        for each in plan.firings:
            for i in each.inputs:
                if i.edge is not None and i.source is not None and (i.edge.delay is not None or i.held):
                    name = self.registers[each.id, i.port.name] = self.names.new(f"{each.id}_{i.port.name}")
                    self.carried[name] = i.source, i.edge.delay, i.held

    def text(self) -> str:
        body = [
            part for line in (self._fused() if self.roles is not None else self._ticked()) for part in wrapped(line, 4)
        ]
        graph, run = self.plan.checked.graph, self.plan.run
        first = [
            ("seed", "int", repr(run.seed)),
            ("total_steps", "int", repr(run.total_steps)),
            ("path", "str", literal(run.path)),
        ]
        lines = [
            '"""A graph written out as a program by `surefoot graph export`; `surefoot graph import` reads it back.',
            *("", f"graph sha256 {graph.sha256()}", '"""', "", "from __future__ import annotations", ""),
            "from dataclasses import dataclass",
            *(["from functools import partial"] if "partial" in self.imports else []),
            *("", "import tyro", ""),
        ]
        self.imports.pop("partial", None)
        for module, names in sorted(self.imports.items()):
            lines += wrapped(f"from {module} import ({', '.join(sorted(names))})", 0, tight="from {0} import {1}")
        lines += [
            *("", f"NAME = {literal(graph.name)}"),
            *([f"ABOUT = {literal(graph.about)}"] if graph.about else []),
            *("", "", "@dataclass(frozen=True, kw_only=True)", "class Config:"),
            *('    """Every field is an option on the command line."""', ""),
            *(f"    {name}: {kind} = {value}" for name, kind, value in [*first, *self.fields]),
            *("", "", "def train(config: Config) -> dict[str, object]:"),
            '    """Run the graph and return its nodes by id."""',
            *(f"    {line}" if line else "" for line in body),
            *("", "", 'if __name__ == "__main__":', "    train(tyro.cli(Config))", ""),
        ]
        return "\n".join(lines)

    def _use(self, module: str, name: str) -> None:
        self.imports.setdefault(module, set()).add(name)

    def _config(self, name: str, value: Any) -> str:
        """Add a field to Config and return the expression that reads it."""
        field_name = Names(*(taken for taken, _, _ in self.fields), "seed", "total_steps", "path", "into").new(name)
        self.fields.append((field_name, annotation(value), literal(value)))
        return f"config.{field_name}"

    def _construct(self, firing: Firing) -> list[str]:
        """Return the comment of a node and the line that builds it."""
        # Positions survive the round trip through the code.
        at = self.plan.checked.flat.layout.get(firing.id)
        where = "" if at is None else f" @ {at[0]:g},{at[1]:g}"
        comment = f"# [node {firing.id}] {firing.declared.name}{where}"
        name, node = self.node_names[firing.id], self.plan.graph.nodes[firing.id]
        if firing.declared.name == "Code":
            return [comment, *code_function(name, firing.params)]
        module, class_name = self.classes[firing.declared.name]
        self._use(module, class_name)
        # Values that the check took from another node are written too: the program has no check.
        names = {p.name for p in firing.declared.params if p.name in node.params or firing.params[p.name] != p.default}
        shown = params_to_json(firing.declared, {name: firing.params[name] for name in names})
        args: list[str] = []
        for key, value in ((key, tidy(value)) for key, value in shown.items()):
            # A dict has no form on the command line, so it is written as a literal.
            plain = isinstance(value, dict) and "kind" not in value
            args.append(f"{key}={literal(value) if plain else self._config(f'{firing.id}_{key}', value)}")
        args += [self._need(firing.id, need) for need in firing.declared.needs]
        if not isinstance(runtime_of(firing.declared), type):
            self.imports["partial"] = set()
            return [comment, f"{name} = partial({', '.join([class_name, *args])})"]
        return [comment, f"{name} = {class_name}({', '.join(args)})"]

    def _need(self, id: str, need: str) -> str:
        match need:
            case "seed" if id not in self.plan.alone:
                self._use(RUNTIME, "node_seed")
                return f"seed=node_seed({literal(id)}, config.seed)"
            case "folder":
                if not any(name == "into" for name, _, _ in self.fields):
                    self.fields.insert(0, ("into", "str", '"."'))
                return "into=config.into"
            case _:
                return f"{need}=config.{need}"

    def _argument(self, firing: Firing, each: Input) -> str:
        assert each.source is not None
        return self.registers.get((firing.id, each.port.name)) or self.vars[each.source]

    def _call(self, firing: Firing) -> str:
        """Return the line that fires a node."""
        connected = [each for each in firing.inputs if each.edge is not None]
        # Batch and Code take any number of inputs, which have no argument names.
        positional = firing.declared.name in ("Batch", "Code") or len(firing.inputs) == 1
        args = [
            self._argument(firing, each) if positional else f"{each.port.name}={self._argument(firing, each)}"
            for each in connected
        ]
        call = f"{self.node_names[firing.id]}({', '.join(args)})"
        targets = [self.vars.get(End(firing.id, name), "_") for name in firing.outputs]
        return call if set(targets) <= {"_"} else f"{', '.join(targets)} = {call}"

    def _ticked(self) -> list[str]:
        plan = self.plan
        lines = [line for each in plan.firings for line in self._construct(each)]
        before, loop = [], list[Firing]()
        ready: set[str] = set()
        for each in plan.firings:
            # Nodes that fire once and do not depend on the loop are called before it.
            early = each.when == "first" and all(
                i.source is None or (i.source.node in ready and i.edge is not None and i.edge.delay is None)
                for i in each.inputs
            )
            if early:
                ready.add(each.id)
                before.append(self._call(each))
            else:
                loop.append(each)
        lines += ["", *before]
        for name, (_, delay, _) in self.carried.items():
            lines.append(f"{name} = {'None' if delay is None or delay.initial is ABSENT else literal(delay.initial)}")
        self._use(RUNTIME, "ticks_for")
        horizons = "".join(
            f", config.{self._field(each, 'rollout_steps')}"
            for each in plan.firings
            if each.declared.name == "PPOTrainerNode"
        )
        streams = (
            " + ".join(
                f"config.{self._field(each, name)}" + (f" * {streams}" if streams > 1 else "")
                for each, name, streams in plan.sources()
            )
            or "1"
        )
        lines.append(f"for tick in range(ticks_for(config.total_steps, {streams}{horizons})):")
        body = [f"{self.vars[end]} = None" for end in self._outside()]
        for condition, block in self._blocks(loop):
            body += [f"if {condition}:", *(f"    {line}" for line in block)] if condition else block
        # At the end of a tick: carry delayed values over, then clear values of the first tick.
        for name, (source, delay, held) in self.carried.items():
            if delay is not None:
                body.append(self._keep(name, source) if held else f"{name} = {self.vars[source]}")
        for end, name in self.vars.items():
            readers = [f for f in plan.firings for i in f.inputs if i.source == end]
            # An OR in mode fby ignores its first input later, so it need not be cleared.
            only_first = all(f.declared.name == "OR" and f.params["mode"] == "fby" for f in readers)
            if plan.checked.clocks[end] == ONCE and not only_first:
                body.append(f"{name} = None")
        lines += [f"    {line}" for line in body or ["pass"]]
        return [*lines, self._result()]

    def _keep(self, name: str, source: End) -> str:
        value = self.vars[source]
        return f"{name} = {value} if {value} is not None else {name}"

    def _field(self, firing: Firing, param: str) -> str:
        """Return the Config field of a parameter; add one if the parameter has its default."""
        wanted = f"{firing.id}_{param}"
        field = next((name for name, _, _ in self.fields if name == wanted or name.startswith(f"{wanted}_")), None)
        return field or self._config(wanted, firing.params[param]).removeprefix("config.")

    def _blocks(self, loop: list[Firing]) -> list[tuple[str, list[str]]]:
        """Return (condition, lines) of consecutive nodes that fire under the same condition."""
        blocks: list[tuple[str, list[str]]] = []
        for each in loop:
            condition = self._condition(each)
            if not blocks or blocks[-1][0] != condition:
                blocks.append((condition, []))
            blocks[-1][1].append(self._call(each))
            # Readers that hold the last value of this node.
            for name, (source, delay, _) in self.carried.items():
                if delay is None and source.node == each.id:
                    blocks[-1][1].append(self._keep(name, source))
        return blocks

    def _condition(self, firing: Firing) -> str:
        if firing.when == "first":
            return "tick == 0"
        if firing.when == "tick":
            return ""
        return " and ".join(
            dict.fromkeys(f"{self._argument(firing, each)} is not None" for each in firing.inputs if each.decides)
        )

    def _outside(self) -> list[End]:
        """Return the outputs of nodes that do not fire in every tick; they are None in the other ticks."""
        return [end for end in self.vars if self.by_id[end.node].when == "there"]

    def _fused(self) -> list[str]:
        roles = self.roles
        assert roles is not None
        six = set(roles.values())
        lines = [*(line for each in self.plan.firings for line in self._construct(each)), ""]
        others = [each for each in self.plan.firings if each.id not in six]
        lines += [self._call(each) for each in others if each.when == "first"]
        self._use(RUNTIME, "Rollouts")
        lines.append("# Six nodes as one: each item is rollout_steps steps in every copy and one update.")
        lines.append(f"rollouts = Rollouts({', '.join(self.node_names[roles[role]] for role in roles)})")
        model = End(roles["agent"], "model")
        if any(i.source == model for f in others for i in f.inputs):
            lines.append(f"{self.vars[model]} = {self.node_names[roles['agent']]}.policy")
        trainer = self.by_id[roles["trainer"]]
        keep = {i.source for f in others for i in f.inputs}
        targets = [self.vars[end] if (end := End(trainer.id, name)) in keep else "_" for name in trainer.outputs]
        later = [each for each in others if each.when != "first"]
        lines.append(f"for {', '.join(targets)} in rollouts:")
        body = [
            f"{self.vars[end]} = None"
            for end in self._outside()
            if not self._comes_with(self.by_id[end.node], trainer.id)
        ]
        for condition, block in self._blocks(later):
            straight = any(self._comes_with(each, trainer.id) for each in later if self._condition(each) == condition)
            body += block if straight else [f"if {condition}:", *(f"    {line}" for line in block)]
        lines += [f"    {line}" for line in body or ["pass"]]
        return [*lines, self._result()]

    def _comes_with(self, firing: Firing, trainer: str) -> bool:
        return all(each.source is not None and each.source.node == trainer for each in firing.inputs if each.decides)

    def _result(self) -> str:
        return f"return {{{', '.join(f'{literal(id)}: {name}' for id, name in self.node_names.items())}}}"
