"""The page of a language run: score, KL, fluency, judge, guards, findings, samples first and last, cost per step."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from surefoot.lm.run import language_rules
from surefoot.telemetry.doctor.doctor import examine
from surefoot.telemetry.doctor.findings import Finding, sentence
from surefoot.telemetry.export.html import Markup, escape, page, section, table
from surefoot.telemetry.export.svg import Line, PlotArea, line_chart, padded_range
from surefoot.telemetry.reader import scan
from surefoot.telemetry.schema import EndRecord, EventRecord, UpdateRecord
from surefoot.train.rundir.rundir import RunDir

# (metric, title, what it means), in the order of the page; metrics that a run does not have are left out.
CHARTS = (
    ("score", "Score", "Mean of the reward per response; with DPO, beta times the mean margin of the pairs."),
    ("judge", "Judge", "Mean score of held-out answers; never learned from."),
    ("kl", "KL to the reference", "Nats per response."),
    ("reference_nll", "Reference NLL", "Nats per token of the responses under the base model: higher is less fluent."),
    ("response_length", "Length", "Tokens per response."),
    ("beta", "Beta", "Weight of the KL."),
    ("repeated_4grams", "Repetition", "Share of 4-grams that occurred before in the same response."),
    ("refusals", "Refusals", "Share of responses that decline or describe the model."),
    ("distinct_2", "Variety", "Distinct pairs of tokens over all pairs."),
    ("preference_accuracy", "Accuracy on the pairs of the step", "Share of pairs with a positive margin."),
    ("held_out_accuracy", "Accuracy on held-out pairs", "Share of pairs with a positive margin."),
    ("chosen_log_ratio", "Chosen against the reference", "Mean log π/π_ref of the preferred responses."),
    ("entropy", "Entropy", "Nats per token."),
)


def updates_of(path: Path) -> list[dict[str, Any]]:
    """Return the metrics of every update in a telemetry file, with their seconds."""
    return [
        {"update": record.updates, **record.m, "seconds": dict(record.seconds or {})}
        for record in scan(path)
        if isinstance(record, UpdateRecord)
    ]


def samples_of(path: Path) -> list[dict[str, Any]]:
    """Return the samples of every step; an incomplete last line of a killed run is left out."""
    samples: list[dict[str, Any]] = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        try:
            samples.append(json.loads(line))
        except ValueError:
            break
    return samples


class LanguageReport:
    """Everything that a page or a terminal shows about a language run.

    Args:
        directory: The run.
    """

    def __init__(self, directory: RunDir) -> None:
        self.directory, self.header = directory, directory.read_header()
        self.rows = updates_of(directory.telemetry)
        found = examine(directory.telemetry, language_rules()).findings
        self.findings: list[Finding] = [finding for finding in found if finding.severity != "info"]
        self.samples = samples_of(directory.path / "samples.ndjson")
        records = list(scan(directory.telemetry))
        self.guards = [r.message for r in records if isinstance(r, EventRecord) and r.name == "guard"]
        self.ended = next((r for r in reversed(records) if isinstance(r, EndRecord)), None)

    @property
    def state(self) -> str:
        """Return in one sentence how the run stands."""
        steps, planned = len(self.rows), self.header["spec"]["lm"]["steps"]
        if self.ended is None:
            return f"running or killed after step {steps} of {planned}"
        if self.ended.reason == "finished":
            return f"finished after {steps} steps" + (f": {self.ended.message}" if self.ended.message else "")
        return f"{self.ended.reason} after step {steps} of {planned}; `{self.header['resume']}` continues it"

    @property
    def verdict(self) -> str:
        """Return the doctor's summary."""
        if not self.findings:
            return "healthy: the doctor found nothing"
        return f"{len(self.findings)} findings: {'; '.join(finding.title for finding in self.findings)}"

    def values(self, name: str) -> list[tuple[int, float]]:
        """Return (step, value) of a metric, where it was measured."""
        return [(row["update"], row[name]) for row in self.rows if row.get(name) is not None]

    def lines(self) -> list[str]:
        """Return the report in plain text."""
        lines = [f"{self.directory.name}: {self.state}", f"  {self.verdict}"]
        for name, _, _ in CHARTS:
            values = [x for _, x in self.values(name)]
            if values:
                first, last = _ends(values)
                extremes = f"(lowest {min(values):.4g}, highest {max(values):.4g})"
                lines.append(f"  {name:<19} {first:10.4g} → {last:10.4g}   {extremes}")
        for step in dict.fromkeys((0, len(self.samples) - 1)) if self.samples else ():
            for each in self.samples[step]["samples"][:2]:
                number = self.samples[step]["step"]
                lines.append(f"  step {number}: {each['prompt']!r} → {each['response']!r} ({each['score']:.3g})")
        return [*lines, *(f"  {sentence(finding)}" for finding in self.findings), *(f"  {x}" for x in self.guards)]

    def write(self) -> Path:
        """Write report.html beside the record, and return its path."""
        target = self.directory.path / "report.html"
        target.write_text(self.page(), encoding="utf-8")
        return target

    def page(self) -> str:
        """Return the page."""
        spec = self.header["spec"]
        template = "chat template" if spec.get("chat_template") else "plain text"
        lead = f"{spec['model']} · {spec['lm']['algorithm']} · {template} · {self.state} · {self.verdict}"
        sections: list[str] = []
        problems = [sentence(finding) for finding in self.findings] + self.guards
        if problems:
            items = "".join(f"<li>{escape(text)}</li>" for text in problems)
            sections.append(section("Findings and guards", "", f"<ul>{items}</ul>", wide=True))
        for name, title, meaning in CHARTS:
            values = self.values(name)
            if len(values) > 1:
                first, last = _ends([x for _, x in values])
                sections.append(section(title, f"{meaning} {first:.4g} → {last:.4g}", _chart(values)))
        if self.samples:
            sections.append(section("Samples, first and last step", "", self._side_by_side(), wide=True))
        sections.append(section("Cost per step", "Mean seconds.", self._cost()))
        settings = [[name, json.dumps(value)] for name, value in spec["lm"].items()]
        sections.append(section("Settings", "", table(["setting", "value"], settings)))
        return page(f"{self.directory.name} · language run", lead, sections)

    def _side_by_side(self) -> str:
        first, last = self.samples[0], self.samples[-1]
        rows = [
            [
                one["prompt"],
                f"{one['response']} ({one['score']:.3g})",
                two["prompt"],
                f"{two['response']} ({two['score']:.3g})",
            ]
            for one, two in zip(first["samples"], last["samples"], strict=False)
        ]
        return table(["prompt", f"step {first['step']}", "prompt", f"step {last['step']}"], rows)

    def _cost(self) -> Markup:
        parts = dict.fromkeys(name for row in self.rows for name in row["seconds"])
        count = max(1, len(self.rows))
        means = {name: sum(row["seconds"].get(name, 0.0) for row in self.rows) / count for name in parts}
        return table(["part", "seconds"], [[name, f"{mean:.3f}"] for name, mean in means.items()])


def _ends(values: Sequence[float]) -> tuple[float, float]:
    """Return the means of the first and the last tenth: single steps are noisy."""
    size = max(1, len(values) // 10)
    return sum(values[:size]) / size, sum(values[-size:]) / size


def _chart(values: Sequence[tuple[int, float]]) -> str:
    steps = [float(step) for step, _ in values]
    area = PlotArea(x=(steps[0], steps[-1]), y=padded_range([x for _, x in values], pad=0.05), left=56)
    return line_chart([Line([(float(step), x) for step, x in values])], area=area)
