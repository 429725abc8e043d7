"""`surefoot telemetry …`: what a run wrote down, checked and told."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from surefoot.cli.options import Json, PrintJson, Runs, run_directory
from surefoot.cli.usage import Usage

if TYPE_CHECKING:
    from surefoot.telemetry.doctor.drift import MetricDrift
    from surefoot.telemetry.validate import FileReport

Record = Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="RUN")]


def record_of(name: str, runs: Path | None) -> Path:
    """Where the record of RUN is: a file, a directory with a record in it, or a run's name."""
    from surefoot.telemetry.files.rotation import live_file

    given = Path(name)
    if given.is_file() or (given.is_dir() and live_file(given).exists()):
        return given
    return run_directory(name, runs).path


@dataclass(frozen=True, kw_only=True)
class ValidateArgs:
    """Check records line by line; every mistake is told as FILE:LINE, with what would be right.

    Reads version 2.x and telemetry_version 1.0, 1.1 and 1.2, each by the rules it was published
    with, plain or gzip, or from a pipe:

        surefoot telemetry validate runs/walk/telemetry.ndjson
        zcat old.ndjson.gz | surefoot telemetry validate -
        surefoot telemetry validate new.jsonl --baseline old.jsonl --drift 6

    Drift is the distance from the baseline's median in units of 1.4826 MAD, which for normal numbers is a standard
    deviation; never a percentage, which a number near zero makes meaningless.
    Exit codes: 0 valid, 1 a line is wrong or the drift too large, 2 there is no such file.
    """

    files: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="FILE")] = ()
    """Records, logs, run directories or names; - is the standard input."""
    strict: bool = False
    """Also look for unknown fields and misspelt numbers, and let warnings count as errors."""
    baseline: Path | None = None
    """Tell the drift against this record or log, or against one JSON object with keys such as baseline_reward_mean."""
    drift: float | None = None
    """How far a number may lie from the baseline, in its robust units."""
    show: int = 20
    """Mistakes to print for each file."""
    as_json: PrintJson = False
    runs: Runs = None

    def run(self) -> int:
        from surefoot.telemetry.doctor.drift import drift, levels
        from surefoot.telemetry.reader import load_curves
        from surefoot.telemetry.validate import validate, validate_lines

        if not self.files:
            raise Usage("no FILE given; `surefoot telemetry validate -` reads the standard input")
        if self.drift is not None and self.baseline is None:
            raise Usage("--drift needs --baseline FILE, the record to compare with")
        verdicts: list[FileReport] = []
        for name in self.files:
            if name == "-":
                verdicts.append(validate_lines("<stdin>", sys.stdin.buffer, strict=self.strict))
            else:
                verdicts += validate(record_of(name, self.runs), strict=self.strict)
        drifts: dict[str, list[MetricDrift]] = {}
        if self.baseline is not None:
            level = levels(self.baseline)
            for name in self.files:
                if name != "-":
                    drifts[name] = drift(load_curves(record_of(name, self.runs)).updates, level)
        far = {
            n: [d.name for d in ds if self.drift is not None and abs(d.worst) > self.drift] for n, ds in drifts.items()
        }
        bad = any(v.errors or (self.strict and v.warnings) for v in verdicts) or any(far.values())
        if self.as_json:
            shown = {
                name: {
                    d.name: {
                        "latest": d.latest,
                        "worst": d.worst,
                        "worst_update": d.worst_update,
                        "far": d.name in far[name],
                    }
                    for d in found
                }
                for name, found in drifts.items()
            }
            print(json.dumps({"valid": not bad, "files": [asdict(verdict) for verdict in verdicts], "drift": shown}))
        else:
            self._print(verdicts, drifts, far)
        return 1 if bad else 0

    def _print(
        self, verdicts: list[FileReport], drifts: dict[str, list[MetricDrift]], far: dict[str, list[str]]
    ) -> None:
        for verdict in verdicts:
            for mistake in verdict.mistakes[: self.show]:
                print(mistake)
            told = f"{verdict.records} record(s) validated"
            if verdict.versions:
                told += f" (version {', '.join(f'{v}: {n}' for v, n in verdict.versions.items())})"
            more = verdict.errors + verdict.warnings - self.show
            told += f"; {verdict.errors} errors" if verdict.errors else ""
            told += f"; {verdict.warnings} warnings" if verdict.warnings else ""
            print(
                f"{verdict.file}: {told}" + (f"; {more} not shown, --show {self.show + more} does" if more > 0 else "")
            )
        for name, found in drifts.items():
            print(f"{name}: drift against {self.baseline}, in robust units (1.4826 MAD)")
            for d in found[:12]:
                mark = "  TOO FAR" if d.name in far[name] else ""
                print(
                    f"  {d.name:<32} median {d.level.median:>11.4g} ± {d.level.scale:<9.3g} latest {d.latest:>+9.2f}  "
                    f"worst {d.worst:>+9.2f} (value {d.worst_value:.4g}, update {d.worst_update}){mark}"
                )
            if not found:
                print("  no number is in both")


@dataclass(frozen=True, kw_only=True)
class SummaryArgs:
    """Tell a run in a page: span, mode, latest values, extremes with their update, findings, drift against a baseline.

        surefoot telemetry summary walk --last 100
        surefoot telemetry summary new.jsonl --baseline old.jsonl --format markdown

    Exit codes: 0 fine, 1 there are open findings of severity error or worse, 2 there is no such run.
    """

    run_name: Record
    """A run's directory or name, or an .ndjson or .jsonl file, of telemetry 1.x too."""
    format: Literal["text", "markdown", "json"] = "text"
    """How to tell it."""
    baseline: str | None = None
    """Another RUN, or a JSON object of numbers, to tell the drift against."""
    last: int | None = None
    """Look at the last so many update lines only."""
    as_json: Json = False
    """The same as --format json."""
    runs: Runs = None

    def run(self) -> int:
        from surefoot.telemetry.export.summary import as_markdown, as_text, summarise

        if self.last is not None and self.last < 1:
            raise Usage(f"--last is {self.last}; it is at least 1")
        baseline = record_of(self.baseline, self.runs) if self.baseline else None
        summary = summarise(record_of(self.run_name, self.runs), baseline=baseline, last=self.last)
        if self.as_json or self.format == "json":
            print(json.dumps(summary.to_json()))
        else:
            print(as_markdown(summary) if self.format == "markdown" else as_text(summary))
        return int(any(f["status"] == "open" and f["severity"] in ("error", "fatal") for f in summary.findings))
