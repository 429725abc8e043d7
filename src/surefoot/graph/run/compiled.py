"""The compiled engine: the exported program itself, in this process."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from surefoot.errors import GraphError
from surefoot.graph.export.script import to_script
from surefoot.graph.run.digits import parameters_sha256
from surefoot.graph.run.execute import execute
from surefoot.graph.run.interpreter import close_all
from surefoot.graph.schedule import schedule
from surefoot.graph.spec.checked import Checked
from surefoot.graph.spec.model import Graph


class Compiled:
    """A graph as straight-line code. `fuse=False` keeps every node in the loop, tick by tick."""

    def __init__(
        self, graph: Graph | Checked, *, into: Path | str = ".", trust: bool = False, fuse: bool = True, **run: Any
    ) -> None:
        self.plan = schedule(graph, **run)
        if self.plan.has_code and not trust:
            raise GraphError("this graph holds code of its own; read it, then say --trust to let it run")
        self.source = to_script(self.plan.checked, fuse=fuse)
        module = ModuleType("surefoot_compiled")
        self.space: dict[str, Any] = module.__dict__
        sys.modules[module.__name__] = module  # dataclasses look there for the names in annotations
        try:
            execute(self.source, self.space, "<graph>")
        finally:
            del sys.modules[module.__name__]
        names = self.space["Config"].__dataclass_fields__
        settings = self.plan.run
        values = {"seed": settings.seed, "total_steps": settings.total_steps, "path": settings.path}
        self.config = self.space["Config"](**values, **({"into": str(into)} if "into" in names else {}))
        self.nodes: dict[str, Any] = {}

    def run(self) -> int:
        """All of it; returns how many ticks that are."""
        self.nodes = self.space["train"](self.config)
        return self.plan.ticks

    def sha256(self) -> str:
        """Of all that was learned."""
        return parameters_sha256(self.nodes)

    def close(self) -> None:
        """Free what nodes hold."""
        close_all(self.nodes)
