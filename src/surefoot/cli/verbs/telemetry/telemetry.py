"""`surefoot telemetry validate` and `summary`: check and summarize telemetry files."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import tyro

from surefoot.cli.options import at_least_one, run_directory
from surefoot.cli.usage import Usage

if TYPE_CHECKING:
    from surefoot.telemetry.doctor.drift import MetricDrift
    from surefoot.telemetry.validate import FileReport

Record = Annotated[
    tyro.conf.Positional[str],
    tyro.conf.arg(
        metavar="RUN", help="The directory or name of a run, or an .ndjson or .jsonl file, also of telemetry 1.x."
    ),
]


def record_of(name: str) -> Path:
    """Return the telemetry that RUN names: a file, a directory with telemetry in it, or the directory of a run."""
    from surefoot.telemetry.files.rotation import live_file

    path = Path(name)
    if path.is_file() or (path.is_dir() and live_file(path).exists()):
        return path
    return run_directory(name).path


@dataclass(frozen=True, kw_only=True)
class ValidateArgs:
    """Validate telemetry files line by line; print every error as FILE:LINE with its correction.

    Reads version 2.x and telemetry_version 1.0, 1.1 and 1.2, each by its published rules, plain or gzip, or from a pipe:

        surefoot telemetry validate runs/walk/telemetry.ndjson
        zcat old.ndjson.gz | surefoot telemetry validate -
        surefoot telemetry validate new.jsonl --baseline old.jsonl --drift 6

    Drift is the distance from the baseline's median in units of 1.4826 MAD (the median absolute deviation), which is one
    standard deviation for normally distributed values. Percentages would be meaningless for metrics near zero.
    Exit codes: 0 valid, 1 a line is invalid or the drift is too large, 2 a file does not exist.
    """

    files: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="FILE")] = ()
    """Telemetry files, or directories or names of runs; - is the standard input."""
    strict: bool = False
    """Also report unknown fields and misspelled metrics, and treat warnings as errors."""
    baseline: Path | None = None
    """Print the drift against this telemetry file, or against a JSON object with keys such as baseline_reward_mean."""
    drift: float | None = None
    """Largest accepted drift."""
    show: int = 20
    """Errors to print per file."""
    as_json: ClassVar[bool] = False

    def run(self) -> int:
        from surefoot.telemetry.doctor.drift import DriftMeter, levels
        from surefoot.telemetry.reader import load_curves
        from surefoot.telemetry.record_table import update_row
        from surefoot.telemetry.validate import validate, validate_lines

        if not self.files:
            raise Usage("no FILE given; `surefoot telemetry validate -` reads the standard input")
        if self.drift is not None and self.baseline is None:
            raise Usage("--drift needs --baseline FILE to compare with")
        reports: list[FileReport] = []
        for name in self.files:
            if name == "-":
                reports.append(validate_lines("<stdin>", sys.stdin.buffer, strict=self.strict))
            else:
                reports += validate(record_of(name), strict=self.strict)
        drifts: dict[str, list[MetricDrift]] = {}
        if self.baseline is not None:
            level = levels(self.baseline)
            for name in self.files:
                if name != "-":
                    meter = DriftMeter(level)
                    load_curves(record_of(name), take=lambda u, _, meter=meter: meter.add(u.updates, update_row(u)))
                    drifts[name] = meter.drifts()
        far = {
            n: [d.name for d in ds if self.drift is not None and abs(d.worst) > self.drift] for n, ds in drifts.items()
        }
        bad = any(v.errors or (self.strict and v.warnings) for v in reports) or any(far.values())
        if self.as_json:
            drift_json = {
                name: {
                    d.name: {
                        "latest": d.latest,
                        "worst": d.worst,
                        "worst_update": d.worst_update,
                        "far": d.name in far[name],
                    }
                    for d in metrics
                }
                for name, metrics in drifts.items()
            }
            print(json.dumps({"valid": not bad, "files": [asdict(report) for report in reports], "drift": drift_json}))
        else:
            self._print(reports, drifts, far)
        return 1 if bad else 0

    def _print(
        self, reports: list[FileReport], drifts: dict[str, list[MetricDrift]], far: dict[str, list[str]]
    ) -> None:
        for report in reports:
            for mistake in report.mistakes[: self.show]:
                print(mistake)
            text = f"{report.file}: {report.records} record(s) validated"
            if report.versions:
                text += f" (version {', '.join(f'{v}: {n}' for v, n in report.versions.items())})"
            text += f"; {report.errors} errors" if report.errors else ""
            text += f"; {report.warnings} warnings" if report.warnings else ""
            hidden = report.errors + report.warnings - self.show
            print(text + (f"; {hidden} not shown, pass --show {self.show + hidden}" if hidden > 0 else ""))
        for name, metrics in drifts.items():
            print(f"{name}: drift against {self.baseline}, in robust units (1.4826 MAD)")
            for d in metrics[:12]:
                mark = "  TOO FAR" if d.name in far[name] else ""
                print(
                    f"  {d.name:<32} median {d.level.median:>11.4g} ± {d.level.scale:<9.3g} latest {d.latest:>+9.2f}  "
                    f"worst {d.worst:>+9.2f} (value {d.worst_value:.4g}, update {d.worst_update}){mark}"
                )
            if not metrics:
                print("  the files have no metric in common")


@dataclass(frozen=True, kw_only=True)
class SummaryArgs:
    """Summarize a run: duration, latest values, extremes with their update, findings, drift from a baseline.

        surefoot telemetry summary walk --last 100
        surefoot telemetry summary new.jsonl --baseline old.jsonl --format markdown

    Exit codes: 0 no problem, 1 there are open findings of severity error or fatal, 2 the run does not exist.
    """

    run_name: Record
    format: Literal["text", "markdown", "json"] = "text"
    """Format of the output."""
    baseline: str | None = None
    """Another RUN, or a file with a JSON object of numbers, to compute the drift from."""
    last: int | None = None
    """Use only this many lines at the end."""
    as_json: ClassVar[bool] = False

    def run(self) -> int:
        from surefoot.telemetry.export.summary import as_markdown, as_text, summarise

        at_least_one(last=self.last)
        baseline = record_of(self.baseline) if self.baseline else None
        summary = summarise(record_of(self.run_name), baseline=baseline, last=self.last)
        if self.as_json or self.format == "json":
            print(json.dumps(summary.to_json()))
        else:
            print(as_markdown(summary) if self.format == "markdown" else as_text(summary))
        return int(any(f["status"] == "open" and f["severity"] in ("error", "fatal") for f in summary.findings))
