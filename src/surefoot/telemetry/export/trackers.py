"""Export of a record to experiment trackers: W&B, trackio and MLflow; offline, during a run or afterwards."""

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
    """The operations of an experiment tracker."""

    def begin(self, config: Mapping[str, Any], t: float) -> None:
        """Begin a run; `config` is nested, `t` is Unix time."""

    def log(self, tags: dict[str, float], step: int, t: float) -> None:
        """Log numbers at an env step."""

    def end(self, *, failed: bool, t: float) -> None:
        """End the run."""


class TrackMirror:
    """A `Mirror` that logs each update and evaluation to a tracker, with SB3's and CleanRL's names, over env steps.

    A tracker that fails is reported once and not used again: it must not stop the run. At least `every` seconds lie
    between two updates, for slow trackers; evaluations are never left out.
    """

    def __init__(self, name: str, tool: Tracker, *, every: float = 0.0) -> None:
        self._name, self._tool, self._every = name, tool, every
        self._tags = Tags()
        self._begun = self._over = self._failed = False
        self._logged_at = self._last = 0.0

    def write(self, record: Record) -> None:
        """Log one record; kinds without numbers are ignored."""
        self._last = record.t
        tags = self._tags.of(record)
        try:
            if not self._begun:
                self._begun = True
                self._tool.begin(record.config if isinstance(record, HeaderRecord) else {}, record.t)
            if isinstance(record, EndRecord):
                self._failed = record.reason in ("error", "diverged")
            elif tags and not self._over:
                if isinstance(record, UpdateRecord):
                    if 0 <= record.t - self._logged_at < self._every:
                        return
                    self._logged_at = record.t
                self._tool.log(tags, record.env_steps, record.t)
        except Exception as error:
            self._give_up(error)

    def close(self) -> None:
        """End the tracker's run, which writes out what is buffered."""
        if self._begun and not self._over:
            try:
                self._tool.end(failed=self._failed, t=self._last)
            except Exception as error:
                self._give_up(error)
        self._over = True

    def _give_up(self, error: Exception) -> None:
        if not self._over:
            self._over = True
            warnings.warn(
                f"{self._name} failed ({error}) and is not used again; the run and its record continue", stacklevel=3
            )


class Wandb:
    """W&B in offline mode: nothing leaves the machine until you run `wandb sync`."""

    def __init__(self, out: Path, run: str) -> None:
        self._wandb: Any = _load("wandb", "wandb")
        self._out, self._run, self._open = out, run, None

    def begin(self, config: Mapping[str, Any], t: float) -> None:
        self._out.mkdir(parents=True, exist_ok=True)
        # Its measurements of the machine and its copy of the terminal would cost time.
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
    """trackio, with its SQLite file in `out`."""

    def __init__(self, out: Path, run: str) -> None:
        # trackio reads the directory when it is imported.
        os.environ["TRACKIO_DIR"] = str(out.absolute())
        self._trackio: Any = _load("trackio", "trackio")
        self._out, self._run, self._open = out, run, None

    def begin(self, config: Mapping[str, Any], t: float) -> None:
        self._out.mkdir(parents=True, exist_ok=True)
        with redirect_stdout(io.StringIO()):  # it prints, and would overwrite a dashboard
            self._open = self._trackio.init(project=PROJECT, name=self._run, resume="allow", config=dict(flat(config)))

    def log(self, tags: dict[str, float], step: int, t: float) -> None:
        self._open.log(tags, step=step)  # pyright: ignore[reportOptionalMemberAccess]

    def end(self, *, failed: bool, t: float) -> None:
        with redirect_stdout(io.StringIO()):
            self._trackio.finish()


class Mlflow:
    """MLflow's file store, which MLflow allows only with an environment variable; its page needs the variable too."""

    def __init__(self, out: Path, run: str) -> None:
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        self._tracking: Any = _load("mlflow.tracking", "mlflow")
        self._entities: Any = _load("mlflow.entities", "mlflow")
        self._out, self._run, self._id = out, run, ""
        self._client: Any = None

    def begin(self, config: Mapping[str, Any], t: float) -> None:
        self._client = self._tracking.MlflowClient(tracking_uri=self._out.absolute().as_uri())
        existing = self._client.get_experiment_by_name(PROJECT)
        experiment = existing.experiment_id if existing else self._client.create_experiment(PROJECT)
        self._id = self._client.create_run(experiment, start_time=int(t * 1000), run_name=self._run).info.run_id
        rows = [self._entities.Param(name, text[:500]) for name, text in flat(config)]
        for start in range(0, len(rows), 100):  # MLflow's limit per call
            self._client.log_batch(self._id, params=rows[start : start + 100])

    def log(self, tags: dict[str, float], step: int, t: float) -> None:
        metric = self._entities.Metric
        self._client.log_batch(self._id, metrics=[metric(tag, x, int(t * 1000), step) for tag, x in tags.items()])

    def end(self, *, failed: bool, t: float) -> None:
        self._client.set_terminated(self._id, "FAILED" if failed else "FINISHED", int(t * 1000))


_TOOLS: dict[str, tuple[type[Wandb] | type[Trackio] | type[Mlflow], float]] = {
    "wandb": (Wandb, 0.0),
    "trackio": (Trackio, 0.0),
    "mlflow": (Mlflow, 1.0),  # writes one file per number: about 10 ms per update
}


def open_mirror(name: ToolName, out: Path, *, run: str, live: bool = True) -> Mirror:
    """Return a mirror to a tracker, under `out`. Raise `TelemetryError` with the extra to install if a package is missing."""
    if name == "tensorboard":
        return TensorBoardMirror(out)
    tool, every = _TOOLS[name]
    return TrackMirror(name, tool(out, run), every=every if live else 0.0)


def to_tool(name: ToolName, run: Path | str, out: Path | str) -> Path:
    """Log a finished record to a tracker; return `out`."""
    records = read_records(run)
    first = next(records, None)
    if first is None:
        raise TelemetryError(f"{run} has no record to export to {name}")
    title = first.run or Path(run).stem
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # there is no run to continue: a failure is an error
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
