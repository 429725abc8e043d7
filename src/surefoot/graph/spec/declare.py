"""A kind of node as it is declared: its ports, its parameters, what it makes of types, and the callable that it names."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from surefoot.data.kinds import Kind
from surefoot.errors import GraphError
from surefoot.graph.spec.types import CONST, TICK, Clock, Type

REQUIRED: Any = object()
"""In place of a default: the parameter must be given."""


@dataclass(frozen=True, slots=True)
class Port:
    """One end of an edge."""

    name: str
    type: Type
    help: str
    _: KW_ONLY
    optional: bool = False
    sampled: bool = False
    """Reads what was last said instead of waiting for something new; so it does not decide when the node fires."""
    event: bool = False
    """Reads what comes in its own tick and nothing otherwise; it does not decide when the node fires either."""
    aliases: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "type": self.type.to_json(),
            "help": self.help,
            "optional": self.optional,
            "sampled": self.sampled,
            "event": self.event,
            "aliases": list(self.aliases),
        }


@dataclass(frozen=True, slots=True)
class Param:
    """A value that is set on the node."""

    name: str
    kind: Kind
    help: str
    default: Any = REQUIRED
    _: KW_ONLY
    aliases: tuple[str, ...] = ()
    config: type[Any] | None = None
    """The config class that declares it, if one does."""
    setting: str = ""
    """Its name there."""

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    def read(self, value: Any) -> Any:
        """The value as the node gets it; text of another library's making is read first."""
        if isinstance(value, str) and self.kind.type not in ("str", "text"):
            value = self.kind.parse(value)
        return self.kind.accept(value)

    def to_json(self) -> dict[str, Any]:
        """A row of the node's panel."""
        return {
            "name": self.name,
            "type": self.kind.type,
            "default": None if self.required else self.kind.to_json(self.default),
            "required": self.required,
            "legal": self.kind.legal,
            "help": self.help,
            "aliases": list(self.aliases),
        }


class Misfit(Exception):
    """Raised by `infer`: what is wrong, and at which port or parameter."""

    def __init__(self, where: str, message: str) -> None:
        super().__init__(message)
        self.where, self.message = where, message


Types = dict[str, Type]
Infer = Callable[[Mapping[str, Any], Mapping[str, Type]], Types]
"""From parameters and the types of what is connected to the types of the outputs; raises Misfit."""
Clocks = Callable[[Mapping[str, Any], Mapping[str, Clock]], tuple[Clock, dict[str, Clock]]]
"""From parameters and the clocks of what is connected to (when it fires, the clocks of its outputs); raises Misfit."""
Lint = Callable[[Mapping[str, Any], Mapping[str, Type]], list[tuple[str, str]]]
"""From the same to (port or parameter, what is lost)."""
Streams = Callable[[Mapping[str, Any]], tuple[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeType:
    """Everything that is known of a kind of node before one is built."""

    name: str
    category: str
    summary: str
    inputs: tuple[Port, ...] = ()
    outputs: tuple[Port, ...] = ()
    params: tuple[Param, ...] = ()
    runtime: str = ""
    """module:callable that does it; the catalogue derives it from the declaration's own module and name."""
    calls: str = ""
    """The library callable behind it, for people."""
    effect: str = "pure"
    """pure, state, rng or io."""
    needs: tuple[str, ...] = ()
    """Which of seed, total_steps, path and envs its constructor wants besides the parameters."""
    source: Clock | None = None
    """When it fires if nothing but sampled ports is connected."""
    infer: Infer | None = None
    clocks: Clocks | None = None
    lint: Lint | None = None
    streams: Streams | None = None
    """For a source of experience: the parameter that says how many copies there are, and how many streams one has."""
    trains: bool = False
    """Its outputs training_complete and loss_info come with an update."""
    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    aliases: tuple[str, ...] = ()

    def input(self, name: str) -> Port | None:
        """The input of that name or alias."""
        return next((port for port in self.inputs if name == port.name or name in port.aliases), None)

    def output(self, name: str) -> Port | None:
        """The output of that name or alias."""
        return next((port for port in self.outputs if name == port.name or name in port.aliases), None)

    def param(self, name: str) -> Param | None:
        """The parameter of that name or alias."""
        return next((param for param in self.params if name == param.name or name in param.aliases), None)

    def to_json(self) -> dict[str, Any]:
        """For palettes and panels."""
        return {
            "name": self.name,
            "category": self.category,
            "summary": self.summary,
            "inputs": [port.to_json() for port in self.inputs],
            "outputs": [port.to_json() for port in self.outputs],
            "params": [param.to_json() for param in self.params],
            "presets": {name: dict(values) for name, values in self.presets.items()},
            "calls": self.calls,
            "effect": self.effect,
            "aliases": list(self.aliases),
        }

    def outputs_of(self, params: Mapping[str, Any], given: Mapping[str, Type]) -> Types:
        """The types of the outputs for these inputs."""
        found = {port.name: port.type for port in self.outputs}
        return found | (self.infer(params, given) if self.infer is not None else {})

    def clocks_of(self, params: Mapping[str, Any], given: Mapping[str, Clock]) -> tuple[Clock, dict[str, Clock]]:
        """When the node fires, and the clocks of its outputs."""
        if self.clocks is not None:
            return self.clocks(params, given)
        fires = self.firing(given)
        return fires, {port.name: fires for port in self.outputs}

    def firing(self, given: Mapping[str, Clock]) -> Clock:
        """The one clock of all inputs that decide when it fires."""
        reads = {name for name in given if (port := self.input(name)) is not None and (port.sampled or port.event)}
        deciding = {name: clock for name, clock in given.items() if clock != CONST and name not in reads}
        if not deciding:
            return self.source or (CONST if given or not self.inputs else TICK)
        first, clock = next(iter(deciding.items()))
        for name, other in deciding.items():
            if other != clock:
                raise Misfit(
                    name,
                    f"{name} comes {other} and {first} comes {clock}; both must come together: put an OR in front of "
                    "one, or take both from nodes of one rate",
                )
        return clock


class Registry:
    """Kinds of nodes by name; a use adds its own with `add`."""

    def __init__(self) -> None:
        self._types: dict[str, NodeType] = {}
        self._names: dict[str, str] = {}

    def add(self, declared: NodeType) -> NodeType:
        """Make a kind known. A name of the catalogue's own is refused; a node of your own may be declared anew."""
        for name in (declared.name, *declared.aliases):
            owner = self._types.get(self._names.get(name, ""))
            if owner is not None and owner.runtime != declared.runtime and owner.runtime.startswith("surefoot."):
                raise GraphError(f"a node called {name!r} is there already ({owner.runtime}); give yours another name")
        self._types[declared.name] = declared
        self._names |= dict.fromkeys((declared.name, *declared.aliases), declared.name)
        return declared

    def find(self, name: str) -> NodeType | None:
        """The kind of that name or alias."""
        return self._types.get(self._names.get(name, ""))

    def get(self, name: str) -> NodeType:
        """The same; a name that is not known is an error that says what was probably meant."""
        found = self.find(name)
        if found is None:
            raise GraphError(f"there is no node called {name!r}{self.near(name)}")
        return found

    def near(self, name: str) -> str:
        """Advice for a name that is not known."""
        close = difflib.get_close_matches(name, sorted(self._names), n=2, cutoff=0.5)
        return f"; did you mean {' or '.join(close)}?" if close else "; `surefoot graph nodes` lists them all"

    def names(self) -> list[str]:
        """Sorted."""
        return sorted(self._types)

    def runtimes(self) -> list[str]:
        """The callables of all kinds, as module:name."""
        return [each.runtime for each in self._types.values()]

    def by_runtime(self, runtime: str) -> NodeType | None:
        """The kind whose callable has this name."""
        return next((each for each in self._types.values() if each.runtime.partition(":")[2] == runtime), None)

    def to_json(self) -> list[dict[str, Any]]:
        """The whole catalogue."""
        return [self._types[name].to_json() for name in self.names()]
