"""The commands of a browser tab, without HTTP: each takes and returns JSON values."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surefoot.errors import ConfigError, GraphError, RunError, SurefootError
from surefoot.graph.export.script import to_script
from surefoot.graph.nodes import REGISTRY
from surefoot.graph.run.interpreter import Break
from surefoot.graph.spec.model import Graph
from surefoot.graph.spec.text import to_json
from surefoot.graph.templates import NAMES, template
from surefoot.server.studio.curves import PANELS
from surefoot.server.studio.doctor_fixes import remedy
from surefoot.server.studio.document_commands import DocumentCommands
from surefoot.server.studio.graph_files import GraphDirectory
from surefoot.server.studio.run_library import Library
from surefoot.server.studio.run_queue import RunQueue
from surefoot.server.studio.tuning import Searches
from surefoot.telemetry.schema import METRICS
from surefoot.train.rundir.rundir import RunDir

if TYPE_CHECKING:
    from surefoot.server.studio.session import Session

COMMANDS = ("run", "pause", "tick", "node", "update", "stop")
Broadcast = Callable[[dict[str, Any]], None]


class Studio:
    """Documents, runs on disk, and the active run, whose events all tabs receive. Used in the event loop only."""

    def __init__(self, root: Path, runs: Path, broadcast: Broadcast) -> None:
        self.graphs, self.library, self.broadcast = GraphDirectory(root / "graphs"), Library(runs), broadcast
        self.documents = DocumentCommands(self.graphs, broadcast, self._is_busy)
        self.searches = Searches(runs)
        self.session: Session | None = None
        self.queue = RunQueue()
        self._batch = 0
        """The batch of the active run; stopping it by hand drops the others of its batch."""
        self._starting = ""
        self._loop: asyncio.AbstractEventLoop | None = None
        self.breaks: list[dict[str, Any]] = []
        self._breaks: list[Break] = []
        self.pace = 0.0
        self.watched: dict[int, list[str]] = {}
        """{tab: outputs that it shows}"""

    async def ask(self, tab: int, verb: str, arguments: dict[str, Any]) -> Any:
        """Execute a tab's command. Raise a `SurefootError` if it is not possible."""
        command = getattr(self, f"do_{verb}", None) or getattr(self.documents, f"do_{verb}", None)
        if command is None:
            raise ConfigError(f"unknown command {verb[:40]!r}")
        try:
            result = command(tab=tab, **arguments) if verb == "watch" else command(**arguments)
        except SurefootError:
            raise
        except OSError as error:
            raise RunError(f"{verb} failed: {error.strerror or error}; nothing was changed") from error
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            raise ConfigError(f"{verb} has missing or unknown arguments: {error}") from error
        return await result if asyncio.iscoroutine(result) else result

    def close(self) -> None:
        """Stop the run and write everything."""
        if self.session is not None:
            self.session.close()
        self.library.close()

    def forget_tab(self, tab: int) -> None:
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
            "documents": self.graphs.names(),
            "metrics": {name: {"healthy": m.healthy, "meaning": m.meaning} for name, m in METRICS.items()},
            "panels": PANELS,
            "session": self._session_json(),
            "breaks": self.breaks,
            "pace": self.pace,
            "queue": self.queue.to_json(),
            "saved_nodes": self.documents.do_saved_nodes(),
        }

    def do_apply(self, doc: str, rule: str) -> dict[str, Any]:
        """Apply the doctor's advice for a finding of the run."""
        findings = [] if self.session is None else self.session.findings
        finding = next((each for each in findings if each["rule"] == rule), None)
        if finding is None:
            raise GraphError(f"the run has no finding {rule[:20]!r}")
        return self.documents.change(doc, remedy(self.graphs.get(doc).graph, finding["patch"]))

    async def do_start(
        self,
        doc: str,
        paused: bool = False,
        trust: bool = False,
        seeds: int = 1,
        sweep: dict[str, list[Any]] | None = None,
    ) -> dict[str, Any]:
        """Start a run; further seeds and the values of a sweep follow one after the other, also after an active run."""
        idle = not self._active()
        self.queue.add(doc, self.graphs.get(doc).graph.copy(), seeds=seeds, sweep=sweep, trust=trust)
        if not idle:
            self._broadcast_queue()
            return {"run": "", "waiting": len(self.queue.waiting)}
        self._starting = doc
        try:
            # Importing torch takes seconds: the page shows that the run is about to start.
            self.broadcast({"on": "starting", "doc": doc})
            await asyncio.to_thread(_sessions)
        finally:
            self._starting = ""
        self._loop = asyncio.get_running_loop()
        return self._start_next(paused=paused)

    def do_unqueue(self, id: int | None = None) -> None:
        """Remove a waiting run, or all of them."""
        self.queue.drop(id=id)
        self._broadcast_queue()

    def _broadcast_queue(self) -> None:
        self.broadcast({"on": "queue", "queue": self.queue.to_json()})

    def _active(self) -> str:
        """Return the document of the active run, or an empty text."""
        return self._starting or (
            self.session.document if self.session is not None and not self.session.has_ended else ""
        )

    def _is_busy(self, doc: str) -> bool:
        return self.session is not None and self.session.document == doc and not self.session.has_ended

    def _begin(self, session: Session) -> dict[str, Any]:
        self.session = session
        session.command("breaks", self._breaks)
        session.command("pace", self.pace)
        self._watch()
        session.start()
        self.broadcast({"on": "session", "session": self._session_json()})
        return {"run": session.keeper.directory.name}

    def _start_next(self, *, paused: bool = False) -> dict[str, Any]:
        """Start the next run of the queue."""
        run = self.queue.take()
        assert run is not None, "the queue has a run"
        self._batch = run.batch
        session = _sessions()(run.doc, run.graph, self.library.root, self._forward, trust=run.trust, paused=paused)
        self._broadcast_queue()
        return self._begin(session)

    def _after_run(self) -> None:
        """Start the next run of the queue; a run that was stopped by hand or failed drops the others of its batch."""
        if self.session is not None and self.session.state != "finished":
            self.queue.drop(batch=self._batch)
            self._broadcast_queue()
        if self.queue.waiting and not self._active():
            self._start_next()

    def _forward(self, message: dict[str, Any]) -> None:
        """Forward an event of the run to the tabs; called in the run's thread."""
        self.broadcast(message)
        # The last message of a run comes after its files are closed.
        if message.get("end") and self.queue.waiting and self._loop is not None:
            self._loop.call_soon_threadsafe(self._after_run)

    def _session_json(self) -> dict[str, Any] | None:
        if self.session is None:
            return None
        return self.session.to_json() | {"waiting": len(self.queue.waiting)}

    def do_command(self, name: str) -> None:
        if name not in COMMANDS:
            raise GraphError(f"unknown command {name[:20]!r}; use one of {', '.join(COMMANDS)}")
        if self.session is None or self.session.has_ended:
            raise GraphError("no run is active")
        self.session.command(name)

    def do_advantages(self, node: str, stream: int = 0) -> dict[str, Any]:
        if self.session is None:
            raise GraphError("no run is active")
        return self.session.advantages(node, stream)

    def do_breaks(self, breaks: list[dict[str, Any]]) -> None:
        # First: it raises if a condition is invalid, and nothing must have changed then.
        self._breaks = [Break(str(b["end"]), str(b["test"]), float(b["limit"]), str(b.get("key", ""))) for b in breaks]
        self.breaks = breaks
        if self.session is not None:
            self.session.command("breaks", self._breaks)
        self.broadcast({"on": "breaks", "breaks": breaks})

    def do_pace(self, pace: float) -> None:
        self.pace = max(0.0, min(1e4, float(pace)))
        if self.session is not None:
            self.session.command("pace", self.pace)
        self.broadcast({"on": "pace", "pace": self.pace})

    def do_watch(self, tab: int, ends: list[str]) -> None:
        # 400: more values do not fit on a screen, and each one costs time in every tick.
        self.watched[tab] = [str(end) for end in ends][:400]
        self._watch()

    def _watch(self) -> None:
        if self.session is not None:
            self.session.command("watch", sorted({end for ends in self.watched.values() for end in ends}))

    async def do_export(self, doc: str = "", run: str = "", style: str = "script") -> dict[str, Any]:
        graph = self.library.graph_of(run) if run else self.graphs.get(doc).graph.copy()
        text = await asyncio.to_thread(_program, graph, style)
        return {"text": text, "style": style, "graph": to_json(graph)}

    async def do_runs(self) -> list[dict[str, Any]]:
        return await asyncio.to_thread(self.library.rows)

    async def do_put_run_away(self, run: str) -> dict[str, Any]:
        """Move a run to runs/.trash."""
        await asyncio.to_thread(self.library.move_to_trash, run)
        return {"run": run}

    async def do_tag(self, run: str, tags: list[str]) -> dict[str, Any]:
        """Replace the tags of a run."""
        return {"tags": await asyncio.to_thread(self.library.tag, run, tags)}

    async def do_curves(self, run: str) -> dict[str, Any]:
        return await asyncio.to_thread(self.library.curves, run)

    async def do_compare(self, runs: list[str], metric: str = "return") -> dict[str, Any]:
        return await asyncio.to_thread(self.library.compare, runs, metric)

    def do_open_run(self, run: str) -> dict[str, Any]:
        """Open the graph of a run as a new document."""
        return self.documents.created(self.graphs.new(run, self.library.graph_of(run)))

    async def do_resume(self, run: str) -> dict[str, Any]:
        directory: RunDir = self.library.get(run)
        if not (directory.path / "graph.json").exists():
            self.library.resume_by_command(run)
            return {"run": run, "doc": ""}
        if not (directory.checkpoints / "latest").exists():
            raise RunError(f"{run} has no checkpoint to resume from")
        graph = self.library.graph_of(run)
        doc = str(directory.read_header().get("document", ""))
        if not any(each["name"] == doc for each in self.graphs.names()):
            doc = self.graphs.new(doc or run, graph).name
        make = await asyncio.to_thread(_sessions)
        if active := self._active():
            raise GraphError(f"{active} is running; stop it first")
        self._loop = asyncio.get_running_loop()
        return self._begin(make(doc, graph, self.library.root, self._forward, resume=directory)) | {"doc": doc}

    async def do_searches(self) -> list[dict[str, Any]]:
        return await asyncio.to_thread(self.searches.rows)

    async def do_search(self, search: str) -> dict[str, Any]:
        return await asyncio.to_thread(self.searches.get, search)

    async def do_open_search(self, search: str) -> dict[str, Any]:
        """Open the winner's graph as a new document."""
        graph = await asyncio.to_thread(self.searches.best_graph, search)
        return self.documents.created(self.graphs.new(f"{search}-best", graph))


def warm_up() -> None:
    """Import torch and run one update, so that the first run of a person starts in a fraction of a second."""
    from surefoot.graph.run.interpreter import Interpreter

    graph = template("cartpole")
    graph.remove("print")
    graph.nodes["trainer"].params |= {"rollout_steps": 8, "epochs": 1, "minibatch_size": 32}
    _sessions()
    with Interpreter(graph, total_steps=64) as run:
        run.run_to_update()


def _sessions() -> type[Session]:
    """Import the class when the first run starts: importing torch would delay the page by seconds."""
    from surefoot.server.studio.session import Session

    return Session


def _program(graph: Graph, style: str) -> str:
    if style != "standalone":
        return to_script(graph)
    from surefoot.graph.export.standalone import to_standalone

    return to_standalone(graph)
