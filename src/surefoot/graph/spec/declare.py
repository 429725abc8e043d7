"""Node types: ports, parameters, type and clock inference, and the runtime callable; `Registry` finds them by name."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

from surefoot.data.kinds import Kind
from surefoot.errors import GraphError
from surefoot.graph.spec.code_source import problem
from surefoot.graph.spec.model import require_name
from surefoot.graph.spec.types import ANY, CONST, TICK, Clock, Type

REQUIRED: Any = object()
"""The default of a parameter that must be set."""


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output of a node."""

    name: str
    type: Type
    help: str
    _: KW_ONLY
    optional: bool = False
    sampled: bool = False
    """Reads the latest value instead of waiting for a new one, so it does not decide when the node fires."""
    event: bool = False
    """Has a value only in the tick in which one arrives; does not decide when the node fires either."""
    aliases: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        names = ("name", "help", "optional", "sampled", "event")
        return {name: getattr(self, name) for name in names} | {
            "type": self.type.to_json(),
            "aliases": list(self.aliases),
        }


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter of a node type."""

    name: str
    kind: Kind
    help: str
    default: Any = REQUIRED
    _: KW_ONLY
    aliases: tuple[str, ...] = ()
    """Other names that graphs may use, such as those of earlier versions."""
    config: type[Any] | None = None
    """The config class that declares this setting, if one does."""
    setting: str = ""
    """The name of the setting in `config`."""

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    @property
    def tooltip(self) -> str:
        """The help text with the other names of the parameter."""
        return f"{self.help} Also called {', '.join(self.aliases)}." if self.aliases else self.help

    def read(self, value: Any) -> Any:
        """Return the checked value; text is parsed first unless the parameter is text itself."""
        # Other programs write numbers as text, and command lines have nothing else.
        if isinstance(value, str) and self.kind.type not in ("str", "text"):
            value = self.kind.parse(value)
        return self.kind.accept(value)

    def to_json(self) -> dict[str, Any]:
        """Return a row of the node's panel."""
        return {
            "name": self.name,
            "type": self.kind.type,
            "default": None if self.required else self.kind.to_json(self.default),
            "required": self.required,
            "legal": self.kind.legal,
            "help": self.tooltip,
            "aliases": list(self.aliases),
        }


class Misfit(Exception):
    """Raised by `infer` and `clocks`: `message` is the reason and `where` the port or parameter."""

    def __init__(self, where: str, message: str) -> None:
        super().__init__(message)
        self.where, self.message = where, message


Types = dict[str, Type]
Infer = Callable[[Mapping[str, Any], Mapping[str, Type]], Types]
"""(parameters, types of the connected inputs) → types of the outputs; raises Misfit."""
Clocks = Callable[[Mapping[str, Any], Mapping[str, Clock]], tuple[Clock, dict[str, Clock]]]
"""(parameters, clocks of the connected inputs) → (clock of the node, clocks of the outputs); raises Misfit."""
Lint = Callable[[Mapping[str, Any], Mapping[str, Type]], list[tuple[str, str]]]
"""(parameters, types of the connected inputs) → (port or parameter, warning) pairs."""
Streams = Callable[[Mapping[str, Any]], tuple[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeType:
    """The declaration of a node type: everything that is known before a node is built."""

    name: str
    category: str
    summary: str
    inputs: tuple[Port, ...] = ()
    outputs: tuple[Port, ...] = ()
    params: tuple[Param, ...] = ()
    runtime: str = ""
    """module:callable that runs the node."""
    calls: str = ""
    """The library callable behind it, shown to users."""
    formula: str = ""
    """What it computes, in one line."""
    paper: str = ""
    """Address of the paper that describes it."""
    effect: str = "pure"
    """pure, state, rng or io."""
    needs: tuple[str, ...] = ()
    """Arguments besides the parameters that the constructor takes: seed, total_steps, path, folder."""
    source: Clock | None = None
    """The clock of the node if only sampled ports are connected."""
    infer: Infer | None = None
    clocks: Clocks | None = None
    lint: Lint | None = None
    streams: Streams | None = None
    """For a source of experience: (parameter with the number of copies, streams per copy)."""
    trains: bool = False
    """Whether its outputs training_complete and loss_info come with an update."""
    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    aliases: tuple[str, ...] = ()

    def input(self, name: str) -> Port | None:
        """Return the input with this name or alias."""
        return next((port for port in self.inputs if name == port.name or name in port.aliases), None)

    def output(self, name: str) -> Port | None:
        """Return the output with this name or alias."""
        return next((port for port in self.outputs if name == port.name or name in port.aliases), None)

    def param(self, name: str) -> Param | None:
        """Return the parameter with this name or alias."""
        return next((param for param in self.params if name == param.name or name in param.aliases), None)

    def to_json(self) -> dict[str, Any]:
        """Return the declaration for palettes and panels."""
        lists = {side: [each.to_json() for each in getattr(self, side)] for side in ("inputs", "outputs", "params")}
        return {name: getattr(self, name) for name in ("name", "category", "summary", "calls", "effect")} | {
            **lists,
            "formula": self.formula,
            "paper": self.paper,
            "file": f"{self.runtime.partition(':')[0].replace('.', '/')}.py" if self.runtime else "",
            "presets": {name: dict(values) for name, values in self.presets.items()},
            "aliases": list(self.aliases),
        }

    def outputs_of(self, params: Mapping[str, Any], inputs: Mapping[str, Type]) -> Types:
        """Return the types of the outputs for these inputs."""
        types = {port.name: port.type for port in self.outputs}
        return types | (self.infer(params, inputs) if self.infer is not None else {})

    def clocks_of(self, params: Mapping[str, Any], inputs: Mapping[str, Clock]) -> tuple[Clock, dict[str, Clock]]:
        """Return the clock of the node and the clocks of its outputs."""
        if self.clocks is not None:
            return self.clocks(params, inputs)
        fires = self.firing(inputs)
        return fires, {port.name: fires for port in self.outputs}

    def firing(self, inputs: Mapping[str, Clock]) -> Clock:
        """Return the common clock of all inputs that decide when the node fires."""
        passive = {name for name in inputs if (port := self.input(name)) is not None and (port.sampled or port.event)}
        deciding = {name: clock for name, clock in inputs.items() if clock != CONST and name not in passive}
        if not deciding:
            return self.source or (CONST if inputs or not self.inputs else TICK)
        first, clock = next(iter(deciding.items()))
        for name, other in deciding.items():
            # Two inputs of different rates would leave one of them waiting, and its values would pile up.
            if other != clock:
                raise Misfit(
                    name,
                    f"{name} has the clock {other} and {first} has {clock}; both must arrive together: put an OR in front "
                    "of one, or connect nodes of the same rate",
                )
        return clock


class Registry:
    """Node types by name and alias."""

    def __init__(self) -> None:
        self._types: dict[str, NodeType] = {}
        self._names: dict[str, str] = {}

    def add(self, declared: NodeType) -> NodeType:
        """Register a node type; a name of a built-in type is refused, a custom type may be declared again."""
        for name in (declared.name, *declared.aliases):
            owner = self._types.get(self._names.get(name, ""))
            # Custom types are registered again when their module is reloaded, as notebooks do.
            if owner is not None and owner.runtime != declared.runtime and owner.runtime.startswith("surefoot."):
                raise GraphError(f"the node type {name!r} exists already ({owner.runtime}); choose another name")
        self._types[declared.name] = declared
        self._names |= dict.fromkeys((declared.name, *declared.aliases), declared.name)
        return declared

    def find(self, name: str) -> NodeType | None:
        """Return the type with this name or alias, or None."""
        return self._types.get(self._names.get(name, ""))

    def get(self, name: str) -> NodeType:
        """Return the type with this name or alias; raise `GraphError` with the nearest names if there is none."""
        declared = self.find(name)
        if declared is None:
            raise GraphError(f"there is no node type {name!r}{self.near(name)}")
        return declared

    def near(self, name: str) -> str:
        """Return advice for an unknown name."""
        # 0.5 also finds a name without its suffix, such as Step for StepNode; lower values suggest unrelated names.
        close = difflib.get_close_matches(name, sorted(self._names), n=2, cutoff=0.5)
        return f"; did you mean {' or '.join(close)}?" if close else "; `surefoot graph nodes` lists all types"

    def names(self) -> list[str]:
        """Return the names of all types, sorted."""
        return sorted(self._types)

    def runtimes(self) -> list[str]:
        """Return the callables of all types as module:name."""
        return [each.runtime for each in self._types.values()]

    def by_runtime(self, runtime: str) -> NodeType | None:
        """Return the type whose callable has this name."""
        return next((each for each in self._types.values() if each.runtime.partition(":")[2] == runtime), None)

    def to_json(self) -> list[dict[str, Any]]:
        """Return all declarations, sorted by name."""
        return [self._types[name].to_json() for name in self.names()]


def code_type(base: NodeType, id: str, params: Mapping[str, Any]) -> NodeType:
    """Return the type of one Code node: its parameters name the ports that `base` does not have."""
    inputs, outputs = (
        tuple(
            Port(require_name(name, f"a port of {id}"), ANY, "A variable of the code.") for name in params.get(side, ())
        )
        for side in ("inputs", "outputs")
    )
    if why := problem(str(params.get("source", "")), *([port.name for port in side] for side in (inputs, outputs))):
        raise GraphError(f"{id}: {why}")
    return replace(base, inputs=inputs, outputs=outputs, source=CONST if params.get("once") else TICK)
