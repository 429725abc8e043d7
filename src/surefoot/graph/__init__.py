"""Node graphs of training loops: checked, run, exported as programs. Torch loads when a graph runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from surefoot._lazy import lazy_names

if TYPE_CHECKING:
    from surefoot.graph.custom_node import Array as Array
    from surefoot.graph.custom_node import Number as Number
    from surefoot.graph.custom_node import Obs as Obs
    from surefoot.graph.custom_node import Table as Table
    from surefoot.graph.custom_node import Trigger as Trigger
    from surefoot.graph.custom_node import node as node
    from surefoot.graph.export.script import to_script as to_script
    from surefoot.graph.export.standalone import to_standalone as to_standalone
    from surefoot.graph.import_.program import from_program as from_program
    from surefoot.graph.run.compiled import Compiled as Compiled
    from surefoot.graph.run.interpreter import Break as Break
    from surefoot.graph.run.interpreter import Interpreter as Interpreter
    from surefoot.graph.run.queues import QueueEngine as QueueEngine
    from surefoot.graph.spec.check import check as check
    from surefoot.graph.spec.history import History as History
    from surefoot.graph.spec.model import ABSENT as ABSENT
    from surefoot.graph.spec.model import Delay as Delay
    from surefoot.graph.spec.model import Graph as Graph
    from surefoot.graph.spec.text import load_graph as load_graph
    from surefoot.graph.spec.text import parse_graph as parse_graph
    from surefoot.graph.spec.text import save_graph as save_graph
    from surefoot.graph.templates import template as template

_load, _names = lazy_names(__name__)


def __getattr__(name: str) -> Any:
    if not name.startswith("_") and name[:1].isupper() and name not in _names():
        from surefoot.graph.custom_node import kind_of
        from surefoot.graph.nodes import REGISTRY

        if REGISTRY.find(name) is not None:
            return kind_of(name)
    return _load(name)


def __dir__() -> list[str]:
    from surefoot.graph.nodes import REGISTRY

    return sorted({*_names(), *REGISTRY.names()})
