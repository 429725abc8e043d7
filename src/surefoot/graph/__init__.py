"""Node graphs: drawn, checked, run and written out as programs. Torch loads when something is run.

    from surefoot.graph import Graph, PPOAgentNode, PPOTrainerNode, template

Every kind of node in the catalogue is a constructor here, by its name.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surefoot.graph.export.script import to_script as to_script
    from surefoot.graph.export.standalone import to_standalone as to_standalone
    from surefoot.graph.import_.program import from_program as from_program
    from surefoot.graph.own import Array as Array
    from surefoot.graph.own import Number as Number
    from surefoot.graph.own import Obs as Obs
    from surefoot.graph.own import Table as Table
    from surefoot.graph.own import Trigger as Trigger
    from surefoot.graph.own import node as node
    from surefoot.graph.run.compiled import Compiled as Compiled
    from surefoot.graph.run.interpreter import Break as Break
    from surefoot.graph.run.interpreter import Interpreter as Interpreter
    from surefoot.graph.run.queues import QueueEngine as QueueEngine
    from surefoot.graph.spec.check import check as check
    from surefoot.graph.spec.model import ABSENT as ABSENT
    from surefoot.graph.spec.model import Delay as Delay
    from surefoot.graph.spec.model import Graph as Graph
    from surefoot.graph.spec.ops import History as History
    from surefoot.graph.spec.text import load_graph as load_graph
    from surefoot.graph.spec.text import parse_graph as parse_graph
    from surefoot.graph.spec.text import save_graph as save_graph
    from surefoot.graph.templates import template as template

_HOME = {
    "ABSENT": "spec.model",
    "Array": "own",
    "Break": "run.interpreter",
    "Compiled": "run.compiled",
    "Delay": "spec.model",
    "Graph": "spec.model",
    "History": "spec.ops",
    "Interpreter": "run.interpreter",
    "Number": "own",
    "Obs": "own",
    "QueueEngine": "run.queues",
    "Table": "own",
    "Trigger": "own",
    "check": "spec.check",
    "from_program": "import_.program",
    "load_graph": "spec.text",
    "node": "own",
    "parse_graph": "spec.text",
    "save_graph": "spec.text",
    "template": "templates",
    "to_script": "export.script",
    "to_standalone": "export.standalone",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(f"surefoot.graph.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    if not name.startswith("_") and name[:1].isupper():
        from surefoot.graph.catalogue import REGISTRY
        from surefoot.graph.own import kind_of

        if REGISTRY.find(name) is not None:
            return kind_of(name)
    raise AttributeError(f"module 'surefoot.graph' has no attribute {name!r}")


def __dir__() -> list[str]:
    from surefoot.graph.catalogue import REGISTRY

    return sorted({*_HOME, *REGISTRY.names()})
