"""Compare runs: group those that differ only in their seed, with scores, interquartile mean and a curve with its band."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from surefoot.errors import TelemetryError
from surefoot.telemetry.export.page import flat
from surefoot.telemetry.reader import Curves
from surefoot.train.diagnose.statistics import Summary, iqms, summarize

# Points of a group's curve. More make the curve finer and the bootstrap below slower in proportion.
POINTS = 60
# Bootstrap samples of the band of a curve. Fewer than `summarize` draws for one score, because each is a whole curve.
_RESAMPLES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScore:
    """The score, curve and settings of one run."""

    name: str
    env: str
    settings: dict[str, str]
    """{dotted name: value}, without the seed."""
    score: float
    steps: np.ndarray
    values: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Runs with the same settings: their scores, and the interquartile mean of their curves with its 95 % band."""

    label: str
    runs: list[str]
    scores: list[float]
    summary: Summary
    steps: np.ndarray
    middle: np.ndarray
    low: np.ndarray
    high: np.ndarray


def one_run(name: str, curves: Curves, metric: str, *, evaluated: bool) -> RunScore:
    """Return the score and curve of a run; with `evaluated` those of its evaluations instead of its training episodes."""
    updates = curves.updates
    values = updates["episodes.return_mean" if metric == "return" else metric]
    known = np.isfinite(values)
    if not known.any() and not evaluated:
        available = ", ".join(sorted(c for c, column in updates.columns.items() if np.isfinite(column).any())[:12])
        raise TelemetryError(f"{name} has no metric {metric}; it has {available or 'no updates'}")
    steps, values = updates.env_steps[known], values[known]
    if evaluated:
        steps, values = curves.evals.env_steps, curves.evals["return_mean"]
        score = float(values[np.isfinite(values)][-1]) if np.isfinite(values).any() else float("nan")
    else:
        # One update is noisy, so the score is the mean of the last tenth of the curve.
        score = float(np.mean(values[-max(1, len(values) // 10) :]))
    if not np.isfinite(score):
        raise TelemetryError(f"{name} has no finite {metric} to compare")
    header = curves.header
    # Without a header the settings are unknown: the name keeps such a run in a group of one.
    rows = flat(header.config) if header else [("record", name)]
    settings = {key: value for key, value in rows if key.rpartition(".")[2] != "seed"}
    return RunScore(
        name=Path(name).name if Path(name).exists() else name,
        env=header.env if header else "unknown environment",
        settings=settings,
        score=score,
        steps=steps,
        values=values,
    )


def differences(runs: Sequence[RunScore]) -> dict[str, list[str]]:
    """Return {setting: its values} for the settings that differ between the runs."""
    differing: dict[str, list[str]] = {}
    all_settings = [run.settings | {"env": run.env} for run in runs]
    for name in dict.fromkeys(name for settings in all_settings for name in settings):
        values = list(dict.fromkeys(settings.get(name, "–") for settings in all_settings))
        if len(values) > 1:
            differing[name] = values
    return differing


def group(runs: Sequence[RunScore]) -> list[Group]:
    """Group the runs by their settings, in order of first appearance."""
    different = differences(runs)
    by_settings: dict[tuple[str, ...], list[RunScore]] = {}
    for run in runs:
        settings = run.settings | {"env": run.env}
        by_settings.setdefault(tuple(settings.get(name, "–") for name in different), []).append(run)
    groups: list[Group] = []
    for key, members in by_settings.items():
        words = [f"{name.rpartition('.')[2]}={value}" for name, value in zip(different, key, strict=True)]
        # More than four settings would make the label too long for a legend or a table.
        label = ", ".join(words[:4]) + (" …" if len(words) > 4 else "")
        if not words or "record" in different:
            label = members[0].name if len(members) == 1 else members[0].env
        groups.append(_make_group(label, members))
    return groups


def _make_group(label: str, members: list[RunScore]) -> Group:
    # Only steps that every member reached: outside of them `interp` would repeat the first or last value.
    start, end = max(run.steps[0] for run in members), min(run.steps[-1] for run in members)
    grid = np.linspace(start, max(end, start), POINTS)
    curves = np.array([np.interp(grid, run.steps, run.values) for run in members])
    # A fixed seed: the same runs always give the same band.
    rng = np.random.default_rng(0)
    picks = rng.integers(len(members), size=(_RESAMPLES, len(members)))
    draws = np.array([_middle(curves[pick]) for pick in picks])
    low, high = np.percentile(draws, [2.5, 97.5], axis=0)
    scores = [run.score for run in members]
    return Group(
        label=label,
        runs=[run.name for run in members],
        scores=scores,
        summary=summarize(scores),
        steps=grid,
        middle=_middle(curves),
        low=low,
        high=high,
    )


def _middle(curves: np.ndarray) -> np.ndarray:
    return iqms(curves.T)


def chance(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the share of pairs (a, b) of both groups in which a is larger: the probability of improvement. Ties count half."""
    a, b = np.asarray(first)[:, None], np.asarray(second)[None]
    return float(np.mean((a > b) + 0.5 * (a == b)))
