"""The commands of a browser tab, without HTTP: each takes and returns JSON values."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surefoot.errors import ConfigError, GraphError, RunError
from surefoot.graph.export.script import to_script
from surefoot.graph.nodes import REGISTRY
from surefoot.graph.run.interpreter import Break
from surefoot.graph.spec.fit import fits, join
from surefoot.graph.spec.model import Graph
from surefoot.graph.spec.ops import Op
from surefoot.graph.spec.subgraphs import group, ungroup, within
from surefoot.graph.spec.text import to_json
from surefoot.graph.templates import NAMES, template
from surefoot.server.studio.doctor_fixes import pinned_on, remedy
from surefoot.server.studio.graph_files import Desk, Document, moves_of
from surefoot.server.studio.run_library import Library
from surefoot.server.studio.tuning import Searches
from surefoot.telemetry.schema import METRICS
from surefoot.train.rundir.rundir import RunDir

if TYPE_CHECKING:
    from surefoot.server.studio.session import Session

COMMANDS = ("run", "pause", "tick", "node", "update", "stop")
Tell = Callable[[dict[str, Any]], None]


class Studio:
    """Documents, runs on disk, and the active run, whose events all tabs receive. Used in the event loop only."""

    def __init__(self, root: Path, runs: Path, tell: Tell) -> None:
        self.desk, self.library, self.tell = Desk(root / "graphs"), Library(runs), tell
        self.searches = Searches(runs)
        self.session: Session | None = None
        self.breaks: list[dict[str, Any]] = []
        self._breaks: list[Break] = []
        self.pace = 0.0
        self.watched: dict[int, list[str]] = {}
        """{tab: outputs that it shows}"""

    async def ask(self, tab: int, verb: str, arguments: dict[str, Any]) -> Any:
        """Execute a tab's command. Raise a `SurefootError` if it is not possible."""
        command = getattr(self, f"do_{verb}", None)
        if command is None:
            raise ConfigError(f"unknown command {verb[:40]!r}")
        if verb == "watch":
            return self.do_watch(tab=tab, **arguments)
        try:
            result = command(**arguments)
        except (KeyError, TypeError, AttributeError) as error:
            raise ConfigError(f"{verb} has missing or unknown arguments: {error}") from error
        return await result if asyncio.iscoroutine(result) else result

    def close(self) -> None:
        """Stop the run and write everything."""
        if self.session is not None:
            self.session.close()
        self.library.close()

    def leave(self, tab: int) -> None:
        """Forget a tab that was closed."""
        if self.watched.pop(tab, None) is not None:
            self._watch()

    def do_hello(self) -> dict[str, Any]:
        """Return what a new tab shows: catalogue, templates, documents and the state of the run."""
        return {
            "catalogue": REGISTRY.to_json(),
            "templates": [
                {"name": name, "about": template(name).about, "graph": to_json(template(name))} for name in NAMES
            ],
            "documents": self.desk.names(),
            "metrics": {name: {"healthy": m.healthy, "meaning": m.meaning} for name, m in METRICS.items()},
            "session": self._session_json(),
            "breaks": self.breaks,
            "pace": self.pace,
        }

    def do_documents(self) -> list[dict[str, Any]]:
        return self.desk.names()

    def do_open(self, doc: str) -> dict[str, Any]:
        return self.desk.get(doc).to_json()

    def do_new(self, name: str = "untitled", template: str = "") -> dict[str, Any]:
        return self._created(self.desk.from_template(template) if template else self.desk.new(name, Graph(name)))

    def do_import(self, name: str, text: str) -> dict[str, Any]:
        document, notes = self.desk.from_text(name, text)
        return self._created(document) | {"notes": notes}

    def do_put_away(self, doc: str) -> None:
        if self.session is not None and self.session.document == doc and not self.session.over:
            raise GraphError(f"{doc} is running; stop it first")
        self.desk.put_away(doc)
        self.tell({"on": "documents", "documents": self.desk.names()})

    def _created(self, document: Document) -> dict[str, Any]:
        self.tell({"on": "documents", "documents": self.desk.names()})
        return document.to_json()

    def do_op(self, doc: str, op: Op, inside: str = "") -> dict[str, Any]:
        return self._change(doc, {"op": "within", "graph": inside, "do": op} if inside else op)

    def do_connect(self, doc: str, source: str, target: str, inside: str = "") -> dict[str, Any]:
        op = join(self._graph(doc, inside), source, target)
        return self.do_op(doc, op, inside) | {"delay": op.get("delay")}

    def do_fits(self, doc: str, source: str, inside: str = "") -> dict[str, Any]:
        return {end: fit.to_json() for end, fit in fits(self._graph(doc, inside), source).items()}

    def do_group(self, doc: str, ids: list[str], name: str, inside: str = "") -> dict[str, Any]:
        if name in self.desk.get(doc).graph.graphs:
            raise GraphError(f"a sub-graph {name[:40]!r} already exists; use another name")
        op = group(self._graph(doc, inside), ids, name)
        return self._change(doc, within(op, inside) if inside else op)

    def do_ungroup(self, doc: str, id: str, inside: str = "") -> dict[str, Any]:
        op = ungroup(self._graph(doc, inside), id, self.desk.get(doc).graph)
        return self._change(doc, within(op, inside) if inside else op)

    def do_undo(self, doc: str) -> bool:
        return self._after_history(doc, self.desk.get(doc).undo())

    def do_redo(self, doc: str) -> bool:
        return self._after_history(doc, self.desk.get(doc).redo())

    def do_go_to(self, doc: str, number: int) -> bool:
        self.desk.get(doc).go_to(int(number))
        return self._after_history(doc, True)

    def do_history(self, doc: str) -> list[dict[str, Any]]:
        return self.desk.get(doc).past()

    def do_apply(self, doc: str, rule: str) -> dict[str, Any]:
        """Apply the doctor's advice for a finding of the run."""
        finding = self.session.findings.get(rule) if self.session is not None else None
        if finding is None:
            raise GraphError(f"the run has no finding {rule[:20]!r}")
        return self._change(doc, remedy(self.desk.get(doc).graph, finding["patch"]))

    def _graph(self, doc: str, inside: str) -> Graph:
        graph = self.desk.get(doc).graph
        if not inside:
            return graph
        if inside not in graph.graphs:
            raise GraphError(f"unknown sub-graph {inside[:40]!r}")
        return graph.graphs[inside]

    def _change(self, doc: str, op: Op) -> dict[str, Any]:
        document = self.desk.get(doc)
        document.do(op)
        if (moves := moves_of(op)) is not None:
            counts = {"done": len(document.history.done), "undone": 0, "version": document.version}
            self.tell({"on": "moved", "doc": doc, "moves": moves, "inside": op.get("graph", ""), **counts})
        else:
            self.tell({"on": "doc", **document.to_json()})
        return {"version": document.version}

    def _after_history(self, doc: str, changed: bool) -> bool:
        if changed:
            self.tell({"on": "doc", **self.desk.get(doc).to_json()})
        return changed

    async def do_start(self, doc: str, paused: bool = False, trust: bool = False) -> dict[str, Any]:
        make = await asyncio.to_thread(_sessions)
        return self._begin(make(doc, *self._room(doc), trust=trust, paused=paused))

    def _room(self, doc: str) -> tuple[Graph, Path, Tell]:
        if self.session is not None and not self.session.over:
            raise GraphError(f"{self.session.document} is running; stop it first")
        return self.desk.get(doc).graph, self.library.root, self._forward

    def _begin(self, session: Session) -> dict[str, Any]:
        self.session = session
        session.command("breaks", self._breaks)
        session.command("pace", self.pace)
        self._watch()
        session.start()
        self.tell({"on": "session", "session": self._session_json()})
        return {"run": session.keeper.directory.name}

    def _forward(self, message: dict[str, Any]) -> None:
        """Forward an event of the run to the tabs; called in the run's thread."""
        if message["on"] == "finding":
            message["finding"] = self._pinned(message["doc"], message["finding"])
        self.tell(message)

    def _pinned(self, doc: str, finding: dict[str, Any]) -> dict[str, Any]:
        return finding | {"node": pinned_on(self.desk.get(doc).graph, finding["patch"])}

    def _session_json(self) -> dict[str, Any] | None:
        if self.session is None:
            return None
        session = self.session.to_json()
        return session | {"findings": [self._pinned(self.session.document, each) for each in session["findings"]]}

    def do_command(self, name: str) -> None:
        if name not in COMMANDS:
            raise GraphError(f"unknown command {name[:20]!r}; use one of {', '.join(COMMANDS)}")
        if self.session is None or self.session.over:
            raise GraphError("no run is active")
        self.session.command(name)

    def do_breaks(self, breaks: list[dict[str, Any]]) -> None:
        # First: it raises if a condition is invalid, and nothing must have changed then.
        self._breaks = breaks_of(breaks)
        self.breaks = breaks
        if self.session is not None:
            self.session.command("breaks", self._breaks)
        self.tell({"on": "breaks", "breaks": breaks})

    def do_pace(self, pace: float) -> None:
        self.pace = max(0.0, min(1e4, float(pace)))
        if self.session is not None:
            self.session.command("pace", self.pace)
        self.tell({"on": "pace", "pace": self.pace})

    def do_watch(self, tab: int, ends: list[str]) -> None:
        # 400: more values do not fit on a screen, and each one costs time in every tick.
        self.watched[tab] = [str(end) for end in ends][:400]
        self._watch()

    def _watch(self) -> None:
        if self.session is not None:
            self.session.command("watch", sorted({end for ends in self.watched.values() for end in ends}))

    async def do_export(self, doc: str = "", run: str = "", style: str = "script") -> dict[str, Any]:
        graph = self.library.graph_of(run) if run else self.desk.get(doc).graph.copy()
        text = await asyncio.to_thread(_program, graph, style)
        return {"text": text, "style": style, "graph": to_json(graph)}

    async def do_runs(self) -> list[dict[str, Any]]:
        return await asyncio.to_thread(self.library.rows)

    async def do_curves(self, run: str) -> dict[str, Any]:
        return await asyncio.to_thread(self.library.curves, run)

    async def do_compare(self, runs: list[str], metric: str = "return") -> dict[str, Any]:
        return await asyncio.to_thread(self.library.compare, runs, metric)

    def do_open_run(self, run: str) -> dict[str, Any]:
        """Open the graph of a run as a new document."""
        return self._created(self.desk.new(run, self.library.graph_of(run)))

    async def do_resume(self, run: str) -> dict[str, Any]:
        directory: RunDir = self.library.get(run)
        if not (directory.path / "graph.json").exists():
            self.library.resume_by_command(run)
            return {"run": run, "doc": ""}
        if not (directory.checkpoints / "latest").exists():
            raise RunError(f"{run} has no checkpoint to resume from")
        graph = self.library.graph_of(run)
        doc = str(directory.read_header().get("document", ""))
        if not any(each["name"] == doc for each in self.desk.names()):
            doc = self.desk.new(doc or run, graph).name
        make = await asyncio.to_thread(_sessions)
        _, runs, tell = self._room(doc)
        return self._begin(make(doc, graph, runs, tell, resume=directory)) | {"doc": doc}

    async def do_searches(self) -> list[dict[str, Any]]:
        return await asyncio.to_thread(self.searches.rows)

    async def do_search(self, search: str) -> dict[str, Any]:
        return await asyncio.to_thread(self.searches.get, search)

    async def do_open_search(self, search: str) -> dict[str, Any]:
        """Open the winner's graph as a new document."""
        graph = await asyncio.to_thread(self.searches.best_graph, search)
        return self._created(self.desk.new(f"{search}-best", graph))


def _sessions() -> type[Session]:
    """Import the class when the first run starts: importing torch would delay the page by seconds."""
    from surefoot.server.studio.session import Session

    return Session


def _program(graph: Graph, style: str) -> str:
    if style != "standalone":
        return to_script(graph)
    from surefoot.graph.export.standalone import to_standalone

    return to_standalone(graph)


def breaks_of(breaks: Iterable[Mapping[str, Any]]) -> list[Break]:
    """Return the conditions that pause a run, from {end, test, limit, key} of the page."""
    return [Break(str(b["end"]), str(b["test"]), float(b["limit"]), str(b.get("key", ""))) for b in breaks]
