"""`surefoot telemetry compare`: compare groups of runs; runs that differ only in their seed form a group."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import tyro

from surefoot.cli.dashboard.braille_plot import sparkline
from surefoot.cli.usage import Usage
from surefoot.cli.verbs.telemetry.telemetry import record_of
from surefoot.telemetry.export.svg import Band, band_chart
from surefoot.telemetry.reader import load_curves
from surefoot.train.diagnose.compare_runs import Group, chance, differences, group, one_run


@dataclass(frozen=True, kw_only=True)
class CompareArgs:
    """Compare runs: group runs that differ only in their seed, and print the IQM of each group with its interval.

        surefoot telemetry compare a-s0 a-s1 a-s2 b-s0 b-s1 b-s2 -o compare.svg
        surefoot telemetry compare runs/* --metric approx_kl

    The score of a run is its last evaluation, or the mean return over the last tenth of its updates if a run has none.
    IQM is the interquartile mean, its interval the 95 % bootstrap interval. Settings that differ are listed. For two
    groups, the probability that a run of the first beats one of the second is printed.
    Exit codes: 0 compared, 2 a run does not exist or has nothing to compare.
    """

    names: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="RUN")] = ()
    """Directories or names of runs, or .ndjson and .jsonl files."""
    metric: str = "return"
    """Metric to compare: return, or a metric of updates such as approx_kl."""
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """SVG file for the curves with their bands."""
    as_json: ClassVar[bool] = False

    def run(self) -> int:
        if not self.names:
            raise Usage("no RUN given; `surefoot telemetry compare RUN RUN …` takes any number")
        loaded = [(name, load_curves(record_of(name))) for name in self.names]
        evaluated = self.metric == "return" and all(len(curves.evals) for _, curves in loaded)
        runs = [one_run(name, curves, self.metric, evaluated=evaluated) for name, curves in loaded]
        groups = group(runs)
        different = differences(runs)
        if self.out:
            bands = [
                Band(
                    label=f"{g.label}: IQM {g.summary.iqm:.4g}, n = {g.summary.count}",
                    x=g.steps.tolist(),
                    middle=g.middle.tolist(),
                    low=g.low.tolist(),
                    high=g.high.tolist(),
                )
                for g in groups
            ]
            self.out.parent.mkdir(parents=True, exist_ok=True)
            self.out.write_text(band_chart(bands, title=f"{self.metric} over env steps", x_label="env steps"))
        score = "last evaluation" if evaluated else f"{self.metric}, last tenth of updates"
        if self.as_json:
            print(json.dumps(_plain(groups, different, score)))
        else:
            print("\n".join(_text(groups, different, score)))
            if self.out:
                print(f"→ {self.out}")
        return 0


def _text(groups: list[Group], different: dict[str, list[str]], score: str) -> list[str]:
    width = max(len(g.label) for g in groups)
    lines = [f"{score}; 95 % bootstrap interval of the IQM over seeds", ""]
    lines.append(f"{'':<{width}}  {'n':>3} {'IQM':>10}  {'95 %':<23} {'min':>10} {'max':>10}  curve")
    for g in sorted(groups, key=lambda g: -g.summary.iqm):
        s = g.summary
        interval = f"[{s.low:.4g}, {s.high:.4g}]" if s.count > 1 else "one seed: none"
        lines.append(
            f"{g.label:<{width}}  {s.count:>3} {s.iqm:>10.4g}  {interval:<23} {s.minimum:>10.4g} {s.maximum:>10.4g}  "
            f"{sparkline(g.middle, 24)}"
        )
    if len(groups) == 2:
        share = chance(groups[0].scores, groups[1].scores)
        lines += ["", f"a run of {groups[0].label!r} is above one of {groups[1].label!r} in {share:.0%} of the pairs"]
    if different and "record" not in different:
        lines += ["", "different settings:", *[f"  {name}: {' | '.join(values)}" for name, values in different.items()]]
    return lines


def _plain(groups: list[Group], different: dict[str, list[str]], score: str) -> dict[str, Any]:
    rows = [{"label": g.label, "runs": g.runs, "scores": g.scores, **asdict(g.summary)} for g in groups]
    pair = {"first_above_second": chance(groups[0].scores, groups[1].scores)} if len(groups) == 2 else {}
    return {"what": score, "groups": rows, "different": different, **pair}
