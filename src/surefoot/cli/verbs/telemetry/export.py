"""`surefoot telemetry export`: convert telemetry for other tools."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import tyro

from surefoot.cli.verbs.telemetry.telemetry import Record, record_of


@dataclass(frozen=True, kw_only=True)
class TelemetryExportArgs:
    """Convert the telemetry of a run into the format of another tool; the original is not changed.

        surefoot telemetry export walk --to tensorboard -o tb/
        surefoot telemetry export old.jsonl --to parquet

    Formats: tensorboard, scalars over environment steps under the names of SB3 and CleanRL; csv, SB3's progress.csv with
    one row per update; monitor, SB3's Monitor file with one row per episode; parquet, one column per metric; wandb,
    trackio and mlflow, an offline run of that tool (needs "surefoot[track]"; upload later, for example with
    `wandb sync DIR/wandb/offline-run-*`); townlet-1.1, flat telemetry 1.1 with one object per epoch.
    Exit codes: 0 written, 2 the run does not exist or a package is missing.
    """

    run_name: Record
    to: Literal["tensorboard", "csv", "monitor", "parquet", "wandb", "trackio", "mlflow", "townlet-1.1"]
    """Format to write."""
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """File or directory to write (default: beside the telemetry)."""
    as_json: ClassVar[bool] = False

    def run(self) -> int:
        import json
        from functools import partial

        from surefoot.compat.townlet.record_writer import to_flat
        from surefoot.telemetry.export import formats
        from surefoot.telemetry.export.trackers import to_tool
        from surefoot.telemetry.files.rotation import live_file

        source = record_of(self.run_name)
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
