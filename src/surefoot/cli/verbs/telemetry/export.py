"""`surefoot telemetry export`: a record in the form that another tool reads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from surefoot.cli.options import PrintJson, Runs
from surefoot.cli.verbs.telemetry.telemetry import Record, record_of


@dataclass(frozen=True, kw_only=True)
class TelemetryExportArgs:
    """Write a record in the form that another tool reads; the record stays as it is.

        surefoot telemetry export walk --to tensorboard -o tb/
        surefoot telemetry export old.jsonl --to parquet

    tensorboard: scalars over env steps, in SB3's names and CleanRL's.
    csv: SB3's progress.csv, a row an update.
    monitor: SB3's Monitor file, a row an episode.
    parquet: every number of every update as a column, in our names.
    wandb, trackio, mlflow: a run of that tool, offline, in SB3's names and CleanRL's; need "surefoot[track]". Nothing
    leaves this machine: `wandb sync DIR/wandb/offline-run-*` would, later.
    townlet-1.1: the flat form of telemetry 1.1, one object per epoch, which validates as telemetry_version 1.1.
    Exit codes: 0 written, 2 there is no such run, or a package is missing.
    """

    run_name: Record
    """A run's directory or name, or an .ndjson or .jsonl file, of telemetry 1.x too."""
    to: Literal["tensorboard", "csv", "monitor", "parquet", "wandb", "trackio", "mlflow", "townlet-1.1"]
    """Which form."""
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """Where it goes (default: beside the record)."""
    as_json: PrintJson = False
    runs: Runs = None

    def run(self) -> int:
        import json
        from functools import partial

        from surefoot.compat.townlet.record_writer import to_flat
        from surefoot.telemetry.export import formats
        from surefoot.telemetry.export.trackers import to_tool
        from surefoot.telemetry.files.rotation import live_file

        source = record_of(self.run_name, self.runs)
        writers = {
            "tensorboard": (formats.to_tensorboard, "tensorboard"),
            "csv": (formats.to_csv, "progress.csv"),
            "monitor": (formats.to_monitor_csv, "monitor.csv"),
            "parquet": (formats.to_parquet, "telemetry.parquet"),
            "wandb": (partial(to_tool, "wandb"), "wandb"),
            "trackio": (partial(to_tool, "trackio"), "trackio"),
            "mlflow": (partial(to_tool, "mlflow"), "mlflow"),
            "townlet-1.1": (to_flat, "ppo.jsonl"),
        }
        write, name = writers[self.to]
        if source.is_file() and "." in name:
            name = f"{source.name.partition('.')[0]}.{name.partition('.')[2]}"
        out = self.out or live_file(source).with_name(name)
        if out.exists() and out.samefile(live_file(source)):
            out = out.with_stem(f"{out.stem}-export")
        out.parent.mkdir(parents=True, exist_ok=True)
        written = write(source, out)
        print(json.dumps({"run": str(source), "to": self.to, "out": str(written)}) if self.as_json else f"→ {written}")
        return 0
