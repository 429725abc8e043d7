"""The compiled engine: runs the exported program in this process."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from traceback import walk_tb
from types import ModuleType
from typing import Any

from surefoot.errors import FiringError, SurefootError
from surefoot.graph.export.script import to_script
from surefoot.graph.run.digits import parameters_sha256
from surefoot.graph.run.execute import execute
from surefoot.graph.run.interpreter import close_all
from surefoot.graph.schedule import schedule
from surefoot.graph.spec.checked import Checked
from surefoot.graph.spec.model import Graph

FILE = "<graph>"
"""The program's file in tracebacks."""


class Compiled:
    """Runs a graph as straight-line code.

    Args:
        graph: The graph, checked or not.
        into: Directory of the run.
        trust: Allow Code nodes to run.
        fuse: Run the plain loop with the library's collector; False fires every node in every tick.
        **run: Overrides of seed, total_steps and path.
    """

    def __init__(
        self, graph: Graph | Checked, *, into: Path | str = ".", trust: bool = False, fuse: bool = True, **run: Any
    ) -> None:
        self.plan = schedule(graph, **run)
        self.plan.require_trust(trust)
        self.source = to_script(self.plan.checked, fuse=fuse)
        module = ModuleType("surefoot_compiled")
        self.space: dict[str, Any] = module.__dict__
        # The dataclass decorator looks up annotations in sys.modules.
        sys.modules[module.__name__] = module
        try:
            execute(self.source, self.space, FILE)
        finally:
            del sys.modules[module.__name__]
        names = self.space["Config"].__dataclass_fields__
        self.config = self.space["Config"](**asdict(self.plan.run), **({"into": str(into)} if "into" in names else {}))
        self.nodes: dict[str, Any] = {}

    def run(self) -> int:
        """Run to the end and return the number of ticks."""
        try:
            self.nodes = self.space["train"](self.config)
        except SurefootError:
            raise
        except Exception as why:
            line = [0, *(n for frame, n in walk_tb(why.__traceback__) if frame.f_code.co_filename == FILE)][-1]
            code = self.source.splitlines()[line - 1].strip() if line else ""
            raise FiringError(f"the program failed in line {line}, `{code}`: {type(why).__name__}: {why}") from why
        return self.plan.ticks

    def sha256(self) -> str:
        """Return a hash of all weights."""
        return parameters_sha256(self.nodes)

    def close(self) -> None:
        """Release files and environments of the nodes."""
        close_all(self.nodes)
