"""Runs that differ only in their seed put together: scores, their interquartile mean, and curves with a band."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from surefoot.errors import TelemetryError
from surefoot.telemetry.export.page import flat
from surefoot.telemetry.reader import Curves
from surefoot.train.diagnose.statistics import Summary, iqms, summarize

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


def one_run(name: str, curves: Curves, metric: str, *, evaluated: bool) -> One:
    """A run's score and curve; `evaluated` takes them from its evaluations."""
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
    differing: dict[str, list[str]] = {}
    everything = [one.settings | {"env": one.env} for one in ones]
    for name in dict.fromkeys(name for settings in everything for name in settings):
        values = list(dict.fromkeys(settings.get(name, "–") for settings in everything))
        if len(values) > 1:
            differing[name] = values
    return differing


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
    return iqms(curves.T)


def chance(first: Sequence[float], second: Sequence[float]) -> float:
    """The share of pairs in which one of the first is larger; ties count half."""
    a, b = np.asarray(first)[:, None], np.asarray(second)[None]
    return float(np.mean((a > b) + 0.5 * (a == b)))
