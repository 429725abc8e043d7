"""The files of a graph's run: the graph, the record with the doctor's findings, and checkpoints."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, Protocol

import torch

from surefoot.graph.run.interpreter import Interpreter
from surefoot.graph.run.snapshot import snapshot, why_inexact, why_not
from surefoot.graph.schedule import Schedule
from surefoot.graph.spec.text import canonical, to_json
from surefoot.learn.checkpoint.atomic_files import REAL_FS, RunLock, replace_file
from surefoot.learn.checkpoint.checkpoint import load_checkpoint, save_checkpoint
from surefoot.learn.checkpoint.retention import prune
from surefoot.learn.learner import Learner
from surefoot.server.studio.scenes import env_of
from surefoot.telemetry.doctor.doctor import LiveDoctor, consequences
from surefoot.telemetry.doctor.findings import Finding
from surefoot.telemetry.schema import EndReason, Episodes
from surefoot.telemetry.writer import Recorder, truncate_after
from surefoot.train.collect.episodes import Episode
from surefoot.train.rundir.run_header import versions
from surefoot.train.rundir.rundir import RunDir, new_run_dir

# Checkpoints per run: the latest, and two in case that one was written while the model diverged.
CHECKPOINTS = 3
NOT_NUMBERS = ("update", "env_steps", "return", "length")


class Trains(Protocol):
    """The part of a trainer node that the record needs."""

    updates: int
    learner: Learner | None
    normalize_rewards: bool

    @property
    def env_steps(self) -> int: ...

    def state(self) -> dict[str, Any]: ...


class Keeper:
    """Writer of a run's files, which `surefoot runs`, `report` and `doctor` read like those of any other run."""

    def __init__(self, plan: Schedule, root: Path, document: str, *, directory: RunDir | None = None) -> None:
        self.plan, self.document = plan, document
        self.env = next((env_of(firing) for firing, *_ in plan.sources()), "graph")
        resumed = directory is not None
        self.directory = directory or new_run_dir(document, plan.run.seed, root=root)
        # Two processes writing one run would corrupt its record.
        self.lock = RunLock(self.directory.path).__enter__()
        try:
            if not resumed:
                self._write_header()
            self.doctor = LiveDoctor()
            self.checkpoint = load_checkpoint(self.directory.checkpoints) if resumed else None
            if self.checkpoint is not None:
                nodes = self.checkpoint.parts["graph"]["nodes"].values()
                updates = max((int(node["updates"]) for node in nodes if "updates" in node), default=0)
                # Updates after the checkpoint are computed again and must not appear twice.
                truncate_after(self.directory.telemetry, updates)
                self.doctor.catch_up(self.directory.telemetry)
            self.recorder = Recorder(self.directory.telemetry, self.directory.name, mirrors=(self.doctor,), early=50)
        except BaseException:
            self.lock.__exit__(None, None, None)
            raise
        self.started = False
        self.why_inexact: str | None = None
        """Why resuming is not bit-exact; set by the session, which builds the engine."""
        self.saved_at = 0 if self.checkpoint is None else self.checkpoint.step

    def _write_header(self) -> None:
        path = self.directory.path
        (path / "graph.json").write_text(canonical(self.plan.checked.graph), encoding="utf-8")
        spec = {"env": self.env, "graph": "graph.json", "seed": self.plan.run.seed}
        header = {
            "name": self.directory.name,
            "kind": "graph",
            "document": self.document,
            "spec": spec | {"total_steps": self.plan.run.total_steps},
            "versions": versions(),
            "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        }
        replace_file(REAL_FS, self.directory.header, (json.dumps(header, indent=2) + "\n").encode())

    def update(self, trainer: Trains, metrics: dict[str, Any], episodes: list[Episode]) -> list[Finding]:
        """Record an update. Return the doctor's new findings."""
        if not self.started:
            self._begin(trainer)
        # The recorder limits the number of episodes per second; the others are only counted.
        room = max(0, self.recorder.room_for_episodes()) if episodes else 0
        self.recorder.drop_episodes(max(0, len(episodes) - room))
        for each in episodes[:room]:
            self.recorder.episode(
                return_=each.return_,
                length=each.length,
                env=each.stream,
                env_steps=int(metrics["env_steps"]),
                terminated=not each.truncated,
            )
        self.recorder.update(
            env_steps=int(metrics["env_steps"]),
            updates=int(metrics["update"]),
            m={name: value for name, value in metrics.items() if name not in NOT_NUMBERS},
            seconds={},
            episodes=Episodes.of([e.return_ for e in episodes], [e.length for e in episodes], [None for _ in episodes]),
        )
        news = self.doctor.take()
        for finding in news:
            self.recorder.finding(**finding.to_json())
        return news

    def findings(self) -> list[dict[str, Any]]:
        """Return what `surefoot doctor` finds in the record so far; `root` is the rule that explains a finding."""
        doctor = self.doctor.doctor
        found = doctor.findings()
        root = {f.rule: rule for rule, below in consequences(found, doctor.rules).items() for f in below}
        return [each.to_json() | {"root": root.get(each.rule, "")} for each in found]

    def _begin(self, trainer: Trains | None) -> None:
        """Write the record's header; `trainer` is None if the run ends before its first update."""
        self.started = True
        learner = None if trainer is None else trainer.learner
        agent = next((f for f in self.plan.firings if f.declared.name == "PPOAgentNode"), None)
        net = {} if agent is None else {name: agent.params[name] for name in ("activation", "normalize_obs")}
        self.recorder.header(
            env=self.env,
            seed=self.plan.run.seed,
            config={
                "ppo": {} if learner is None else learner.config.to_json(),
                "net": net,
                "collect": {"normalize_reward": trainer is not None and trainer.normalize_rewards},
                "nodes": to_json(self.plan.checked.graph)["nodes"],
            },
            versions=versions(),
            command=["surefoot", "graph", "run", str(self.directory.path / "graph.json")],
            threads=torch.get_num_threads(),
            exact=self.why_inexact is None,
            exact_reason=self.why_inexact or "",
            path="" if learner is None else learner.path,
            path_reason="" if learner is None else learner.path_reason,
            num_envs=self.plan.streams,
            total_steps=self.plan.run.total_steps,
        )

    def save(self, trainer: Trains, engine: Interpreter) -> None:
        """Save a checkpoint, unless nothing was learned since the last one or a node cannot be restored."""
        if trainer.learner is None and not trainer.updates:
            return
        if engine.ticks == self.saved_at or why_not(engine) is not None:
            return
        reason = why_inexact(engine)
        meta = {"exact": reason is None, "why": reason or ""}
        state = trainer.state() | {"graph": snapshot(engine)}
        save_checkpoint(self.directory.checkpoints, engine.ticks, state, meta=meta, ready=self.recorder.sync)
        prune(self.directory.checkpoints, CHECKPOINTS)
        self.saved_at = engine.ticks

    def close(self, reason: EndReason, message: str = "") -> None:
        """Record the end and release the run directory."""
        try:
            if not self.started:
                self._begin(None)
            self.recorder.close(reason, message)
        finally:
            self.lock.__exit__(None, None, None)
