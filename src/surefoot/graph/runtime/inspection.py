"""Evaluation, recording, checkpoints, plots and printing."""

from __future__ import annotations

from collections import deque
from typing import Any

from surefoot.envs.api import World
from surefoot.envs.make import make_world
from surefoot.graph.runtime.base import RuntimeNode
from surefoot.learn.checkpoint.checkpoint import save_checkpoint
from surefoot.learn.checkpoint.retention import prune
from surefoot.nets.policy import Policy
from surefoot.telemetry import writer
from surefoot.telemetry.schema import Episodes
from surefoot.train.collect.episodes import Episode
from surefoot.train.evaluate import EVAL_SEED_OFFSET, play

# Copies that an evaluation steps together, as many as it plays episodes by default.
STREAMS = 10
COUNTERS = ("update", "env_steps", "return", "length")
FIRST = (*COUNTERS, "approx_kl", "clip_fraction", "entropy", "explained_variance", "loss")
"""The metrics of an update that Print shows."""


class EveryNode(RuntimeNode):
    """A node that acts on every n-th call; n is its parameter `every`."""

    def setup(self) -> None:
        self.calls = 0

    def is_due(self) -> bool:
        """Count a call and return whether the node acts on it."""
        self.calls += 1
        return self.calls % self.params.every == 0

    def snapshot(self) -> dict[str, Any]:
        return {"asked": self.calls}

    def restore(self, saved: dict[str, Any]) -> None:
        self.calls = int(saved["asked"])


class EvaluationNode(EveryNode):
    """Mean and standard deviation of the return over complete episodes."""

    world: World | None = None

    def __call__(self, trigger: Any, model: Policy) -> tuple[float | None, float | None]:
        if not self.is_due():
            return None, None
        episodes = self.params.episodes
        if self.world is None:
            self.world = make_world(self.params.env_id, min(episodes, STREAMS), backend=self.params.backend)
        # A fixed seed: two evaluations differ by the policy only.
        played = play(model, self.world, episodes, seed=self.seed + EVAL_SEED_OFFSET, path=self.path)
        return played.mean, played.std


class RecorderNode(RuntimeNode):
    """The telemetry of the run; the file is opened at the first update."""

    recorder: writer.Recorder | None = None

    def __call__(self, loss_info: dict[str, Any], episodes: list[Episode] | None = None) -> None:
        if self.recorder is None:
            # Opened late: a graph that fails in its first tick leaves no empty record.
            folder = self.into / self.params.folder
            folder.mkdir(parents=True, exist_ok=True)
            self.recorder = writer.Recorder(folder / "telemetry.ndjson", folder.resolve().name)
            self.recorder.header(env="graph", seed=self.seed, config={}, total_steps=self.total_steps)
        fresh, steps = episodes or [], int(loss_info["env_steps"])
        for each in fresh:
            self.recorder.episode(
                return_=each.return_,
                length=each.length,
                env=each.stream,
                env_steps=steps,
                terminated=not each.truncated,
            )
        self.recorder.update(
            env_steps=steps,
            updates=int(loss_info["update"]),
            m={name: value for name, value in loss_info.items() if name not in COUNTERS},
            epochs=[],
            seconds={},
            episodes=Episodes.of([e.return_ for e in fresh], [e.length for e in fresh], [None for _ in fresh]),
        )

    def close(self) -> None:
        """Write the last record."""
        if self.recorder is not None:
            self.recorder.close("finished", "")


class CheckpointNode(EveryNode):
    """A checkpoint directory after every n-th update; the newest `keep` stay."""

    def __call__(self, trigger: Any, learner: Any) -> int | None:
        if not self.is_due():
            return None
        root = self.into / self.params.folder
        save_checkpoint(root, learner.updates, learner.state())
        prune(root, self.params.keep)
        return learner.updates


class PlotNode(RuntimeNode):
    """The last values, for a plot."""

    def setup(self) -> None:
        self.values = deque[Any](maxlen=self.params.points)

    def snapshot(self) -> dict[str, Any]:
        return {"values": [value for value in self.values if isinstance(value, int | float)]}

    def restore(self, saved: dict[str, Any]) -> None:
        self.values.clear()
        self.values.extend(saved["values"])

    def __call__(self, value: Any) -> None:
        self.values.append(value)


class PrintNode(EveryNode):
    """One line per n-th value."""

    def __call__(self, value: Any) -> None:
        if self.is_due() and self.params.enabled:
            print(f"{self.params.prefix}{one_line(value)}", flush=True)


def one_line(value: Any) -> str:
    """Return a value as one line; of the metrics of an update, the most important ones."""
    if isinstance(value, dict):
        names = [name for name in FIRST if name in value] or list(value)[:8]
        return "  ".join(f"{name} {_number(value[name])}" for name in names)
    return _number(value)


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}" if isinstance(value, float) else str(value)
