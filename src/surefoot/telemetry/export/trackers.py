"""The record in other people's experiment trackers: W&B, trackio and MLflow, offline, live or afterwards."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Mapping
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol

from surefoot.errors import TelemetryError
from surefoot.telemetry.export.formats import Tags, TensorBoardMirror
from surefoot.telemetry.export.page import flat
from surefoot.telemetry.reader import read_records
from surefoot.telemetry.schema import EndRecord, HeaderRecord, Record, UpdateRecord
from surefoot.telemetry.writer import Mirror

ToolName = Literal["tensorboard", "wandb", "trackio", "mlflow"]
PROJECT = "surefoot"


class Tracker(Protocol):
    """What a tracker is asked to do."""

    def begin(self, config: Mapping[str, Any], t: float) -> None:
        """A run begins; `config` is nested, `t` is Unix time."""
        ...

    def log(self, tags: dict[str, float], step: int, t: float) -> None:
        """Numbers at an env step."""
        ...

    def end(self, *, failed: bool, t: float) -> None:
        """The run is over."""
        ...


class TrackMirror:
    """A `Mirror` that gives a tool each update and evaluation, under SB3's names and CleanRL's, over env steps.

    A tool that fails on the way is told of once and left alone: it must not cost the run. `every` seconds pass from one
    update to the next, for tools that are slow; evaluations are never left out.
    """

    def __init__(self, name: str, tool: Tracker, *, every: float = 0.0) -> None:
        self._name, self._tool, self._every = name, tool, every
        self._tags = Tags()
        self._begun = self._over = self._failed = False
        self._told_at = self._last = 0.0

    def write(self, record: Record) -> None:
        """Mirror one record; kinds without curves are passed over."""
        self._last = record.t
        tags = self._tags.of(record)
        try:
            if not self._begun:
                self._begun = True
                self._tool.begin(record.config if isinstance(record, HeaderRecord) else {}, record.t)
            if isinstance(record, EndRecord):
                self._failed = record.reason in ("error", "diverged")
            elif tags and not self._over and not self._too_soon(record):
                self._tool.log(tags, record.env_steps, record.t)
        except Exception as error:
            self._give_up(error)

    def close(self) -> None:
        """Say that the run is over, which writes out what is held back."""
        if self._begun and not self._over:
            try:
                self._tool.end(failed=self._failed, t=self._last)
            except Exception as error:
                self._give_up(error)
        self._over = True

    def _too_soon(self, record: Record) -> bool:
        if not isinstance(record, UpdateRecord):
            return False
        if 0 <= record.t - self._told_at < self._every:
            return True
        self._told_at = record.t
        return False

    def _give_up(self, error: Exception) -> None:
        if not self._over:
            self._over = True
            warnings.warn(f"{self._name} takes no more numbers ({error}); the run and its record go on", stacklevel=3)


class Wandb:
    """W&B in offline mode: nothing leaves the machine until somebody types `wandb sync`."""

    def __init__(self, out: Path, run: str) -> None:
        self._wandb: Any = _load("wandb", "wandb")
        self._out, self._run, self._open = out, run, None

    def begin(self, config: Mapping[str, Any], t: float) -> None:
        self._out.mkdir(parents=True, exist_ok=True)
        # Its own pictures of the machine and the terminal would cost time, and are in the record already.
        settings = self._wandb.Settings(silent=True, console="off", x_disable_stats=True)
        self._open = self._wandb.init(
            mode="offline",
            dir=str(self._out),
            project=PROJECT,
            name=self._run,
            group=self._run,
            config=dict(config),
            settings=settings,
        )

    def log(self, tags: dict[str, float], step: int, t: float) -> None:
        self._open.log({**tags, "_timestamp": t}, step=step)  # pyright: ignore[reportOptionalMemberAccess]

    def end(self, *, failed: bool, t: float) -> None:
        self._open.finish(exit_code=int(failed))  # pyright: ignore[reportOptionalMemberAccess]


class Trackio:
    """trackio's own SQLite file, in the directory given."""

    def __init__(self, out: Path, run: str) -> None:
        # It looks where to write when it is imported.
        os.environ["TRACKIO_DIR"] = str(out.absolute())
        self._trackio: Any = _load("trackio", "trackio")
        self._out, self._run, self._open = out, run, None

    def begin(self, config: Mapping[str, Any], t: float) -> None:
        self._out.mkdir(parents=True, exist_ok=True)
        with redirect_stdout(io.StringIO()):  # it speaks, and a dashboard may be on the screen
            self._open = self._trackio.init(project=PROJECT, name=self._run, resume="allow", config=dict(flat(config)))

    def log(self, tags: dict[str, float], step: int, t: float) -> None:
        self._open.log(tags, step=step)  # pyright: ignore[reportOptionalMemberAccess]

    def end(self, *, failed: bool, t: float) -> None:
        with redirect_stdout(io.StringIO()):
            self._trackio.finish()


class Mlflow:
    """MLflow's file store. It wants to be asked twice for it, by an environment variable: so must its own page be."""

    def __init__(self, out: Path, run: str) -> None:
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        self._tracking: Any = _load("mlflow.tracking", "mlflow")
        self._entities: Any = _load("mlflow.entities", "mlflow")
        self._out, self._run, self._id = out, run, ""
        self._client: Any = None

    def begin(self, config: Mapping[str, Any], t: float) -> None:
        self._client = self._tracking.MlflowClient(tracking_uri=self._out.absolute().as_uri())
        found = self._client.get_experiment_by_name(PROJECT)
        experiment = found.experiment_id if found else self._client.create_experiment(PROJECT)
        begun = self._client.create_run(experiment, start_time=int(t * 1000), run_name=self._run)
        self._id = begun.info.run_id
        rows = [self._entities.Param(name, text[:500]) for name, text in flat(config)]
        for start in range(0, len(rows), 100):  # as many as it takes at a time
            self._client.log_batch(self._id, params=rows[start : start + 100])

    def log(self, tags: dict[str, float], step: int, t: float) -> None:
        metric = self._entities.Metric
        self._client.log_batch(self._id, metrics=[metric(tag, x, int(t * 1000), step) for tag, x in tags.items()])

    def end(self, *, failed: bool, t: float) -> None:
        self._client.set_terminated(self._id, "FAILED" if failed else "FINISHED", int(t * 1000))


_TOOLS: dict[str, tuple[type[Wandb] | type[Trackio] | type[Mlflow], float]] = {
    "wandb": (Wandb, 0.0),
    "trackio": (Trackio, 0.0),
    "mlflow": (Mlflow, 1.0),  # writes a file a number: some 10 ms a line
}


def open_mirror(name: ToolName, out: Path, *, run: str, live: bool = True) -> Mirror:
    """What mirrors a run to a tool, under `out`; a package that is missing is a TelemetryError that says which extra."""
    if name == "tensorboard":
        return TensorBoardMirror(out)
    tool, every = _TOOLS[name]
    return TrackMirror(name, tool(out, run), every=every if live else 0.0)


def to_tool(name: ToolName, run: Path | str, out: Path | str) -> Path:
    """Give a finished record to a tool, all of it."""
    records = read_records(run)
    first = next(records, None)
    if first is None:
        raise TelemetryError(f"{run} has no record to give to {name}")
    title = first.run or Path(run).stem
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # nothing goes on here: what fails has failed
        mirror = open_mirror(name, Path(out), run=title, live=False)
        try:
            mirror.write(first)
            for record in records:
                mirror.write(record)
        except UserWarning as error:
            raise TelemetryError(str(error)) from error
        finally:
            mirror.close()
    return Path(out)


def _load(module: str, package: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        extra = "trackio" if package == "trackio" else "track"
        raise TelemetryError(f'{package} is not installed: pip install "surefoot[{extra}]"') from error
