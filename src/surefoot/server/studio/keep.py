"""What stays of a graph's run: the graph, its record with the doctor beside it, and checkpoints to go on from."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import torch

from surefoot.errors import CheckpointMissing, RunError
from surefoot.graph.nodes.trainer import PPOTrainer
from surefoot.graph.run.interpreter import Interpreter
from surefoot.graph.schedule import Schedule
from surefoot.graph.spec.text import canonical, to_json
from surefoot.learn.checkpoint import load_checkpoint, save_checkpoint
from surefoot.learn.files import REAL_FS, RunLock, replace_file
from surefoot.learn.retention import prune
from surefoot.telemetry.attend import Attending
from surefoot.telemetry.findings import Finding
from surefoot.telemetry.schema import EndReason, Episodes
from surefoot.telemetry.writer import Recorder, truncate_after
from surefoot.train.episodes import Episode
from surefoot.train.run import versions
from surefoot.train.rundir import RunDir, new_run_dir

KEPT = 3
NOT_NUMBERS = ("update", "env_steps", "return", "length")


class Keeper:
    """Writes a run of a graph down. `surefoot runs`, `report` and `doctor` read it as any other."""

    def __init__(self, plan: Schedule, root: Path, document: str, *, directory: RunDir | None = None) -> None:
        self.plan, self.document = plan, document
        self.env = next((f.params["env_id"] for f in plan.firings if f.declared.name == "Environment"), "graph")
        resumed = directory is not None
        self.directory = directory or new_run_dir(document, plan.run.seed, root=root)
        self.lock = RunLock(self.directory.path).__enter__()
        try:
            if not resumed:
                self._write_header()
            self.attending = Attending()
            self.checkpoint = load_checkpoint(self.directory.checkpoints) if resumed else None
            if self.checkpoint is not None:
                truncate_after(self.directory.telemetry, self.checkpoint.step)
                self.attending.catch_up(self.directory.telemetry)
            self.recorder = Recorder(self.directory.telemetry, self.directory.name, mirrors=(self.attending,), early=50)
        except BaseException:
            self.lock.__exit__(None, None, None)
            raise
        self.begun = False
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

    def update(self, trainer: PPOTrainer, told: dict[str, Any], episodes: list[Episode]) -> list[Finding]:
        """Write an update down; what the doctor has to say about it."""
        if not self.begun:
            self._begin(trainer)
        room = max(0, self.recorder.room_for_episodes()) if episodes else 0
        self.recorder.drop_episodes(max(0, len(episodes) - room))
        for each in episodes[:room]:
            self.recorder.episode(
                return_=each.return_,
                length=each.length,
                env=each.stream,
                env_steps=int(told["env_steps"]),
                terminated=not each.truncated,
            )
        self.recorder.update(
            env_steps=int(told["env_steps"]),
            updates=int(told["update"]),
            m={name: value for name, value in told.items() if name not in NOT_NUMBERS},
            seconds={},
            episodes=Episodes.of([e.return_ for e in episodes], [e.length for e in episodes], [None for _ in episodes]),
        )
        news = self.attending.take()
        for finding in news:
            self.recorder.finding(**finding.to_json())
        return news

    def _begin(self, trainer: PPOTrainer | None) -> None:
        """The record's first line; `trainer` is None in a run that ends before its first update."""
        self.begun = True
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
            exact=False,
            exact_reason="a graph's environments start new episodes when it is taken up again",
            path="" if learner is None else learner.path,
            path_reason="" if learner is None else learner.path_reason,
            num_envs=self.plan.streams,
            total_steps=self.plan.run.total_steps,
        )

    def save(self, trainer: PPOTrainer, tick: int) -> None:
        """A checkpoint to go on from."""
        if trainer.learner is None or trainer.updates == self.saved_at or trainer.ticks is None:
            return
        at = {"tick": tick, "env_steps": trainer.ticks.env_steps}
        meta = {"exact": False, "why": "environments start new episodes"}
        state = trainer.state() | {"run": at}
        save_checkpoint(self.directory.checkpoints, trainer.updates, state, meta=meta, ready=self.recorder.sync)
        prune(self.directory.checkpoints, KEPT)
        self.saved_at = trainer.updates

    def close(self, reason: EndReason, message: str = "") -> None:
        """Write the end down."""
        try:
            if not self.begun:
                self._begin(None)
            self.recorder.close(reason, message)
        finally:
            self.lock.__exit__(None, None, None)


def take_up(engine: Interpreter, keeper: Keeper) -> None:
    """Put a checkpoint's weights into a graph that starts anew, after its first tick has built what holds them."""
    checkpoint = keeper.checkpoint
    if checkpoint is None:
        raise CheckpointMissing(f"{keeper.directory.path} has no checkpoint to go on from")
    trainers = [node for node in engine.nodes.values() if isinstance(node, PPOTrainer)]
    if len(trainers) != 1 or any(f.declared.name == "HighLevelPPO" for f in engine.plan.firings):
        raise RunError("only a run with a single learner is taken up again; start this one anew")
    trainer, parts = trainers[0], checkpoint.parts
    engine.tick()
    assert trainer.learner is not None
    assert trainer.ticks is not None
    weights = {name: torch.as_tensor(x) for name, x in parts["weights"].items()}
    trainer.learner.policy.load_state_dict(weights)
    trainer.learner.set_state({"optimizer": parts["optimizer"], "learner": parts["learner"]})
    for node in engine.nodes.values():
        actor = getattr(node, "actor", None)
        if actor is not None:
            actor.net.refresh()
    trainer.updates = checkpoint.step
    trainer.ticks.env_steps = int(parts["run"]["env_steps"])
    engine.machine.tick = int(parts["run"]["tick"]) + 1
