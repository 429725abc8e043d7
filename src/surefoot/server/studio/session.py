"""A run of a graph in a thread: controlled by commands, reporting its state several times per second."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from surefoot.errors import FiringError, GraphError, SurefootError
from surefoot.graph.run.interpreter import Interpreter
from surefoot.graph.run.live_values import Live, summary
from surefoot.graph.run.snapshot import restore, why_inexact, why_not
from surefoot.graph.schedule import schedule
from surefoot.graph.spec.model import End, Graph, as_end
from surefoot.server.studio.advantages import advantages_of
from surefoot.server.studio.curves import CurveBook
from surefoot.server.studio.doctor_fixes import pinned_on
from surefoot.server.studio.run_storage import Keeper, Trains
from surefoot.server.studio.scenes import EnvScene, scenes_of
from surefoot.telemetry.schema import EndReason
from surefoot.train.device import pin_threads
from surefoot.train.rundir.rundir import RunDir

# Seconds between two status messages: numbers that change faster cannot be read.
GAP = 0.1
# Seconds between two frames of the environments: 25 per second look continuous.
FRAME = 0.04
# Shares of the time are sent with every tenth status message. A graph that is fired node by node is profiled in the time before
# these only, because profiling slows it down.
PROFILED = 10
# Seconds between two checkpoints: the most that a crash of the browser's machine loses.
SAVE_EVERY, SAVE_FIRST = 20.0, 3.0
# Longest sleep of a paced run, so that it reacts to commands.
MOST_SECONDS = 0.25


class Session:
    """One run of one document. Its methods may be called from any thread; `broadcast` is called in the run's thread.

    Args:
        document: Name of the document.
        graph: Copied, so that later changes of the document do not affect the run.
        runs: Directory that the run's directory is created in.
        broadcast: Called with every message for the tabs.
        resume: Run directory to continue from its last checkpoint.
        trust: Allow nodes that execute user code.
        paused: Start paused.
    """

    def __init__(
        self,
        document: str,
        graph: Graph,
        runs: Path,
        broadcast: Callable[[dict[str, Any]], None],
        *,
        resume: RunDir | None = None,
        trust: bool = False,
        paused: bool = False,
    ) -> None:
        self.document, self.broadcast, self.trust = document, broadcast, trust
        self.graph = graph.copy()
        self.plan = schedule(self.graph)
        self.keeper = Keeper(self.plan, runs, document, directory=resume)
        self.sha256 = self.graph.sha256()
        self.curves = CurveBook()
        self.state, self.why = "starting", ""
        self.error: dict[str, Any] | None = None
        self.findings: list[dict[str, Any]] = []
        """What `surefoot doctor` finds in the record so far, each with the node to change."""
        self._commands: queue.Queue[tuple[str, Any]] = queue.Queue()
        self._goal = "" if paused else "run"
        """run, update (pause after the next one), or empty: paused."""
        self._pace = 0.0
        self._numbers: dict[str, Any] = {}
        self._thread = threading.Thread(target=self._main, name="studio-run", daemon=True)

    def start(self) -> None:
        """Start the run's thread."""
        self._thread.start()

    def command(self, name: str, value: Any = None) -> None:
        """Queue a command: run, pause, tick, node, update, stop; or watch, breaks and pace (ticks per second) with a value."""
        self._commands.put((name, value))

    def close(self) -> None:
        """Stop, and wait until everything is written."""
        self.command("stop")
        if self._thread.is_alive():
            self._thread.join(timeout=30)

    @property
    def has_ended(self) -> bool:
        return self.state in ("finished", "stopped", "failed")

    def to_json(self) -> dict[str, Any]:
        """Return the complete state, for a tab that is opened later."""
        return self._status() | {"curves": self.curves.to_json(), "findings": self.findings}

    def advantages(self, node: str, stream: int) -> dict[str, Any]:
        """Return the advantages of a trainer's last rollout; raise `GraphError` if there are none."""
        trainer = getattr(self, "trainers", {}).get(node)
        rollout = getattr(trainer, "rollout", None)
        if trainer is None or rollout is None:
            raise GraphError(f"{node[:40]!r} has no advantages yet; they are there after its first update")
        config = trainer.learner.config
        return advantages_of(rollout, stream, gamma=config.gamma, lam=config.lam) | {"update": trainer.updates}

    def _status(self) -> dict[str, Any]:
        return {
            "doc": self.document,
            "run": self.keeper.directory.name,
            "state": self.state,
            "why": self.why,
            "error": self.error,
            "sha256": self.sha256,
            "total_ticks": self.plan.ticks,
            "order": [each.id for each in self.plan.firings],
            **self._numbers,
        }

    def _main(self) -> None:
        pin_threads(1)
        reason: EndReason = "error"
        message = ""
        try:
            self._build()
            self._work()
            self.state = "finished" if self.engine.finished else "stopped"
            reason = "finished" if self.engine.finished else "interrupted"
        except FiringError as error:
            inputs = {port: summary(value) for port, value in error.inputs.items()}
            self._fail(message := str(error), node=error.node, tick=error.tick, inputs=inputs)
        except SurefootError as error:
            # Errors while building start with the name of the node.
            name = str(error).partition(":")[0]
            self._fail(message := str(error), node=name if name in self.graph.nodes else "")
        except BaseException as error:
            # SystemExit too, which would end a thread without a word.
            self._fail(message := f"{type(error).__name__}: {error}")
            raise
        finally:
            self._end(reason, message)

    def _fail(self, message: str, **where: Any) -> None:
        self.state, self.error = "failed", {"message": message, "node": "", "tick": 0, "inputs": {}} | where

    def _build(self) -> None:
        into = self.keeper.directory.path / "nodes"
        self.engine = Interpreter(self.plan, into=into, trust=self.trust, live=Live(1.0 / GAP))
        self.trainers: dict[str, Trains] = {
            each.id: self.engine.nodes[each.id] for each in self.plan.firings if each.declared.trains
        }
        self.keeper.why_inexact = why_not(self.engine) or why_inexact(self.engine)
        # Outputs of the trainers that are recorded after every update.
        slots = self.engine.machine.slots
        self._reports = [
            (node, slots[End(id, "loss_info")], slots[End(id, "episodes")]) for id, node in self.trainers.items()
        ]
        self._last_update = -1
        self.scenes: list[EnvScene] = scenes_of(self.engine)
        self._last = (time.monotonic(), 0)
        self._next_number = self._next_frame = 0.0
        # The first checkpoint comes early: a run that is killed soon can be resumed, too.
        self._saved, self._statuses, self._slept_to = time.monotonic() - SAVE_EVERY + SAVE_FIRST, 0, 0.0
        if self.keeper.checkpoint is not None:
            restore(self.engine, self.keeper.checkpoint.parts["graph"])
            self._examine()
        self.state = "running" if self._goal else "paused"
        self._send_status()

    def _work(self) -> None:
        engine = self.engine
        while not engine.finished:
            if not self._execute(wait=not self._goal):
                return
            if not self._goal:
                continue
            engine.profile = not engine.by_rollouts and self._statuses % PROFILED == 0
            # A slowed-down run is followed tick by tick.
            engine.fuse = not self._pace
            # Returns to handle commands, to send a status, or at a break condition.
            engine.run(stop=self._between_ticks)
            self._between_ticks()
            if engine.stopped_by is not None:
                hit, engine.stopped_by = engine.stopped_by, None
                name = f"{hit.end}[{hit.key}]" if hit.key else hit.end
                self._pause(f"{name} {hit.test} {hit.limit:g}")
            now = time.monotonic()
            if now >= self._next_number or not self._goal:
                self._send_status()
                self._next_number = time.monotonic() + GAP
            if now - self._saved > SAVE_EVERY:
                self._save()
        self._send_status()

    def _between_ticks(self) -> bool:
        """Handle updates and frames between two ticks. Return True to interrupt the engine."""
        engine = self.engine
        values, tick = engine.machine.values, engine.ticks
        if tick != self._last_update:
            for trainer, info, episodes in self._reports:
                if values[info] is not None and tick > 0:
                    self._last_update = tick
                    self._record(trainer, values[info], values[episodes] or [])
        now = time.monotonic()
        if self.scenes and now >= self._next_frame:
            self._next_frame = now + max(FRAME, *(each.gap for each in self.scenes))
            frames = [frame for each in self.scenes if (frame := each.frame(engine)) is not None]
            self.broadcast({"on": "frames", "doc": self.document, "frames": frames})
        if self._pace:
            self._slept_to = due = max(self._slept_to, now - MOST_SECONDS) + 1.0 / self._pace
            if due > now:
                time.sleep(min(MOST_SECONDS, due - now))
        return not self._goal or now >= self._next_number or not self._commands.empty()

    def _record(self, trainer: Trains, metrics: dict[str, Any], episodes: list[Any]) -> None:
        self.curves.add(metrics)
        if self.keeper.update(trainer, metrics, episodes):
            self._examine()
        if self._goal == "update":
            self._pause(f"update {metrics['update']}")

    def _examine(self) -> None:
        self.findings = [each | {"node": pinned_on(self.graph, each["patch"])} for each in self.keeper.findings()]
        self.broadcast({"on": "findings", "doc": self.document, "findings": self.findings})

    def _execute(self, *, wait: bool) -> bool:
        """Execute the commands that arrived. Return False for a stop."""
        while True:
            try:
                name, value = self._commands.get(timeout=0.5) if wait else self._commands.get_nowait()
            except queue.Empty:
                return True
            if name == "stop":
                return False
            self._do(name, value)
            wait = not self._goal

    def _do(self, name: str, value: Any) -> None:
        match name:
            case "run" | "update":
                self._goal, self.state, self.why, self._slept_to = name, "running", "", 0.0
                self._last = (time.monotonic(), self.engine.ticks)
            case "pause":
                self._pause("")
            case "tick":
                self.engine.tick()
                self._between_ticks()
                self._pause("one tick")
            case "node":
                self.engine.step_node()
                self._between_ticks()
                self._pause(f"{self.engine.fired} fired")
            case "watch":
                self._watch(value)
            case "breaks":
                self.engine.breaks = [each for each in value if as_end(each.end) in self.engine.machine.slots]
            case "pace":
                self._pace = float(value)
            case _:
                raise GraphError(f"unknown command {name!r}")
        if not self._goal or name in ("run", "update"):
            self._send_status()

    def _pause(self, why: str) -> None:
        if self.state == "running":
            self._save()
        self._goal, self.state, self.why = "", "paused", why

    def _watch(self, ends: Iterable[str]) -> None:
        watched = {end for end in map(as_end, ends) if end in self.engine.machine.slots}
        live = self.engine.live
        for end in set(live.rings) - watched:
            live.forget(end)
        for end in watched:
            live.watch(end)

    def _send_status(self) -> None:
        engine, now = self.engine, time.monotonic()
        if not self._goal and engine.live.rings:
            engine.live.sample(engine.ticks, engine.machine.value)
        since, ticks = self._last
        if self._goal and now - since > 0.5:
            self._numbers["ticks_per_second"] = (engine.ticks - ticks) / (now - since)
            self._last = (now, engine.ticks)
        self._statuses += 1
        if self._statuses % PROFILED == 1 and any(engine.seconds.values()):
            self._numbers["shares"] = {id: round(share, 4) for id, share in engine.shares().items()}
            # Halved, so that the shares follow the recent past.
            engine.seconds = {id: seconds * 0.5 for id, seconds in engine.seconds.items()}
        self._numbers |= {
            "tick": engine.ticks,
            "updates": engine.updates,
            "env_steps": engine.ticks * self.plan.streams,
            "next": "" if engine.finished else engine.next_node,
        }
        self.broadcast(
            {
                "on": "status",
                **self._status(),
                "values": {str(end): ring[-1] for end, ring in engine.live.rings.items() if ring},
                "news": self.curves.take(),
            }
        )

    def _save(self) -> None:
        self._saved = time.monotonic()
        if len(self.trainers) == 1:
            self.keeper.save(next(iter(self.trainers.values())), self.engine)

    def _end(self, reason: EndReason, message: str) -> None:
        engine = getattr(self, "engine", None)
        try:
            if engine is not None:
                if self.state in ("finished", "stopped"):
                    self._save()
                engine.close()
        finally:
            self.keeper.close(reason, message)
            self._examine()
            # Steps of an unfinished rollout are not in the record; the page shows the number that the record has.
            self._numbers["env_steps"] = self.keeper.recorder.env_steps
            self.broadcast({"on": "status", "end": True, **self._status(), "values": {}, "news": self.curves.take()})
