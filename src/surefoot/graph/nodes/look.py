"""Looking and keeping: evaluation, record, checkpoint, plot, print."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

from surefoot.envs.api import World
from surefoot.envs.make import make_world
from surefoot.learn.checkpoint.checkpoint import save_checkpoint
from surefoot.learn.checkpoint.retention import prune
from surefoot.nets.policy import Policy
from surefoot.telemetry import writer
from surefoot.telemetry.schema import Episodes
from surefoot.train.collect.episodes import Episode
from surefoot.train.evaluate import EVAL_SEED_OFFSET, play

STREAMS = 10


class Counts:
    """Nodes that do something only each so-many-th time."""

    asked: int

    def snapshot(self) -> dict[str, Any]:
        """How often it was asked."""
        return {"asked": self.asked}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from there."""
        self.asked = int(saved["asked"])


class Evaluation(Counts):
    """Mean and spread of the return over whole episodes, each `every`-th time it is asked."""

    def __init__(
        self,
        env_id: str,
        episodes: int = 10,
        every: int = 10,
        backend: str = "auto",
        *,
        seed: int = 0,
        path: str = "auto",
    ) -> None:
        self.env_id, self.episodes, self.every, self.backend = env_id, episodes, every, backend
        self.seed, self.path, self.asked = seed + EVAL_SEED_OFFSET, path, 0
        self.world: World | None = None

    def __call__(self, trigger: Any, model: Policy) -> tuple[float | None, float | None]:
        self.asked += 1
        if self.asked % self.every:
            return None, None
        if self.world is None:
            self.world = make_world(self.env_id, min(self.episodes, STREAMS), backend=self.backend)  # type: ignore[arg-type]
        played = play(model, self.world, self.episodes, seed=self.seed, path=self.path)
        return played.mean, played.std


class Recorder:
    """The run's record, opened at the first update."""

    def __init__(self, folder: str = ".", *, seed: int = 0, total_steps: int = 0, into: Path | str = ".") -> None:
        self.path, self.seed, self.total_steps = Path(into) / folder / "telemetry.ndjson", seed, total_steps
        self.recorder: writer.Recorder | None = None

    def __call__(self, loss_info: dict[str, Any], episodes: list[Episode] | None = None) -> None:
        recorder = self.recorder or self._open()
        fresh, steps = episodes or [], int(loss_info["env_steps"])
        for each in fresh:
            recorder.episode(
                return_=each.return_,
                length=each.length,
                env=each.stream,
                env_steps=steps,
                terminated=not each.truncated,
            )
        numbers = {
            name: value for name, value in loss_info.items() if name not in ("update", "env_steps", "return", "length")
        }
        recorder.update(
            env_steps=steps,
            updates=int(loss_info["update"]),
            m=numbers,
            epochs=[],
            seconds={},
            episodes=Episodes.of([e.return_ for e in fresh], [e.length for e in fresh], [None for _ in fresh]),
        )

    def _open(self) -> writer.Recorder:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.recorder = writer.Recorder(self.path, self.path.parent.resolve().name)
        self.recorder.header(env="graph", seed=self.seed, config={}, total_steps=self.total_steps)
        return self.recorder

    def close(self) -> None:
        """Write the end down."""
        if self.recorder is not None:
            self.recorder.close("finished", "")


class CheckpointNode(Counts):
    """A checkpoint directory each `every`-th update; the newest `keep` stay."""

    def __init__(self, every: int = 10, keep: int = 3, folder: str = "checkpoints", *, into: Path | str = ".") -> None:
        self.every, self.keep, self.root, self.asked = every, keep, Path(into) / folder, 0

    def __call__(self, trigger: Any, learner: Any) -> int | None:
        self.asked += 1
        if self.asked % self.every:
            return None
        save_checkpoint(self.root, learner.updates, learner.state())
        prune(self.root, self.keep)
        return learner.updates


class Plot:
    """The last values, for whoever draws them."""

    def __init__(self, title: str = "", points: int = 1000) -> None:
        self.title, self.values = title, deque[Any](maxlen=points)

    def snapshot(self) -> dict[str, Any]:
        """The numbers among the values."""
        return {"values": [value for value in self.values if isinstance(value, int | float)]}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from there."""
        self.values.clear()
        self.values.extend(saved["values"])

    def __call__(self, value: Any) -> None:
        self.values.append(value)


class Print(Counts):
    """One line for each `every`-th value."""

    def __init__(self, prefix: str = "", every: int = 1, enabled: bool = True) -> None:
        self.prefix, self.every, self.enabled, self.asked = prefix, every, enabled, 0

    def __call__(self, value: Any) -> None:
        self.asked += 1
        if self.enabled and self.asked % self.every == 0:
            print(f"{self.prefix}{shown(value)}", flush=True)


def shown(value: Any) -> str:
    """A value in one line; of a table of an update, what people look at first."""
    if isinstance(value, dict):
        first = (
            "update",
            "env_steps",
            "return",
            "length",
            "approx_kl",
            "clip_fraction",
            "entropy",
            "explained_variance",
            "loss",
        )
        names = [name for name in first if name in value] or list(value)[:8]
        return "  ".join(f"{name} {_number(value[name])}" for name in names)
    return _number(value)


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}" if isinstance(value, float) else str(value)
