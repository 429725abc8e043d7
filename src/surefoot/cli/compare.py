"""`surefoot telemetry compare`: runs that differ only in their seed are one row; rows differ in what was set."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from surefoot.cli.plot import sparkline
from surefoot.cli.telemetry import Json, record_of
from surefoot.cli.usage import Usage
from surefoot.errors import TelemetryError
from surefoot.telemetry.read import Curves, load_curves
from surefoot.telemetry.view import flat
from surefoot.train.statistics import Summary, iqm, summarize

POINTS = 60
_RESAMPLES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class One:
    """A run, as far as comparing goes."""

    name: str
    env: str
    settings: dict[str, str]
    """Flat, without the seed."""
    score: float
    steps: np.ndarray
    values: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Seeds of one setting: their scores together, and their middle curve with its 95 % band."""

    label: str
    runs: list[str]
    scores: list[float]
    summary: Summary
    steps: np.ndarray
    middle: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True, kw_only=True)
class CompareArgs:
    """Compare runs: those that differ only in their seed are put together, with IQM and its 95 % bootstrap interval.

        surefoot telemetry compare a-s0 a-s1 a-s2 b-s0 b-s1 b-s2 -o compare.svg
        surefoot telemetry compare runs/* --metric approx_kl

    The score of a run is its last evaluation, or, where a run has none, the mean return of the last tenth of its
    updates. What was set differently is listed. With two groups the chance that a run of the first beats one of the
    second is told. Exit codes: 0 compared, 2 a run is not there or has nothing to compare.
    """

    names: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="RUN")] = ()
    """Runs' directories or names, or .ndjson and .jsonl files."""
    metric: str = "return"
    """What to compare: return, or any number of an update, such as approx_kl."""
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """Draw the curves with their bands to this SVG file."""
    as_json: Json = False
    """Print JSON."""
    runs: Path | None = None
    """Where runs are kept (default $SUREFOOT_RUNS or ./runs)."""

    def run(self) -> int:
        if not self.names:
            raise Usage("no RUN given; `surefoot telemetry compare RUN RUN …` takes any number")
        loaded = [(name, load_curves(record_of(name, self.runs))) for name in self.names]
        evaluated = self.metric == "return" and all(len(curves.evals) for _, curves in loaded)
        ones = [_one(name, curves, self.metric, evaluated=evaluated) for name, curves in loaded]
        groups = group(ones)
        different = differences(ones)
        if self.out:
            from surefoot.cli.compare_picture import draw

            self.out.parent.mkdir(parents=True, exist_ok=True)
            self.out.write_text(draw(groups, self.metric))
        what = "last evaluation" if evaluated else f"{self.metric}, last tenth of updates"
        if self.as_json:
            print(json.dumps(_plain(groups, different, what)))
        else:
            print("\n".join(_text(groups, different, what)))
            if self.out:
                print(f"→ {self.out}")
        return 0


def _one(name: str, curves: Curves, metric: str, *, evaluated: bool) -> One:
    updates = curves.updates
    values = updates["episodes.return_mean" if metric == "return" else metric]
    known = np.isfinite(values)
    if not known.any() and not evaluated:
        have = ", ".join(sorted(c for c, column in updates.columns.items() if np.isfinite(column).any())[:12])
        raise TelemetryError(f"{name} has no {metric}; it has {have or 'no updates'}")
    steps, values = updates.env_steps[known], values[known]
    if evaluated:
        steps, values = curves.evals.env_steps, curves.evals["return_mean"]
        score = float(values[np.isfinite(values)][-1]) if np.isfinite(values).any() else float("nan")
    else:
        score = float(np.mean(values[-max(1, len(values) // 10) :]))
    if not np.isfinite(score):
        raise TelemetryError(f"{name} has no finite {metric} to compare")
    header = curves.header
    rows = flat(header.config) if header else [("record", name)]
    settings = {key: value for key, value in rows if key.rpartition(".")[2] != "seed"}
    return One(
        name=Path(name).name if Path(name).exists() else name,
        env=header.env if header else "unknown world",
        settings=settings,
        score=score,
        steps=steps,
        values=values,
    )


def differences(ones: Sequence[One]) -> dict[str, list[str]]:
    """{setting: its values} of the settings that are not the same in all runs."""
    found: dict[str, list[str]] = {}
    everything = [one.settings | {"env": one.env} for one in ones]
    for name in dict.fromkeys(name for settings in everything for name in settings):
        values = list(dict.fromkeys(settings.get(name, "–") for settings in everything))
        if len(values) > 1:
            found[name] = values
    return found


def group(ones: Sequence[One]) -> list[Group]:
    """The runs by what was set, in the order given."""
    different = differences(ones)
    together: dict[tuple[str, ...], list[One]] = {}
    for one in ones:
        settings = one.settings | {"env": one.env}
        together.setdefault(tuple(settings.get(name, "–") for name in different), []).append(one)
    groups: list[Group] = []
    for key, members in together.items():
        words = [f"{name.rpartition('.')[2]}={value}" for name, value in zip(different, key, strict=True)]
        label = ", ".join(words[:4]) + (" …" if len(words) > 4 else "")
        if not words or "record" in different:
            label = members[0].name if len(members) == 1 else members[0].env
        groups.append(_together(label, members))
    return groups


def _together(label: str, members: list[One]) -> Group:
    start, end = max(one.steps[0] for one in members), min(one.steps[-1] for one in members)
    grid = np.linspace(start, max(end, start), POINTS)
    curves = np.array([np.interp(grid, one.steps, one.values) for one in members])
    rng = np.random.default_rng(0)
    picks = rng.integers(len(members), size=(_RESAMPLES, len(members)))
    draws = np.array([_middle(curves[pick]) for pick in picks])
    low, high = np.percentile(draws, [2.5, 97.5], axis=0)
    scores = [one.score for one in members]
    return Group(
        label=label,
        runs=[one.name for one in members],
        scores=scores,
        summary=summarize(scores),
        steps=grid,
        middle=_middle(curves),
        low=low,
        high=high,
    )


def _middle(curves: np.ndarray) -> np.ndarray:
    return np.array([iqm(column) for column in curves.T])


def chance(first: Sequence[float], second: Sequence[float]) -> float:
    """The share of pairs in which one of the first is larger; ties count half."""
    a, b = np.asarray(first)[:, None], np.asarray(second)[None]
    return float(np.mean((a > b) + 0.5 * (a == b)))


def _text(groups: list[Group], different: dict[str, list[str]], what: str) -> list[str]:
    width = max(len(g.label) for g in groups)
    lines = [f"{what}; 95 % bootstrap interval of the IQM over seeds", ""]
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
        lines += ["", "set differently:", *[f"  {name}: {' | '.join(values)}" for name, values in different.items()]]
    return lines


def _plain(groups: list[Group], different: dict[str, list[str]], what: str) -> dict[str, Any]:
    told = [{"label": g.label, "runs": g.runs, "scores": g.scores, **asdict(g.summary)} for g in groups]
    pair = {"first_above_second": chance(groups[0].scores, groups[1].scores)} if len(groups) == 2 else {}
    return {"what": what, "groups": told, "different": different, **pair}
