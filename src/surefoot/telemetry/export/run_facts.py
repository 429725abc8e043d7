"""The facts at the head of a report: state, score, speed and time per phase."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surefoot.telemetry.reader import Curves
from surefoot.telemetry.record_table import RecordTable


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """State, tiles and time split of a run."""

    env: str
    run: str
    state: str
    """running, finished, interrupted, error, diverged, or killed (no end record and no writer)."""
    state_text: str
    tiles: list[tuple[str, str, str]]
    """(label, value, note)"""
    split: list[tuple[str, float]]
    """Seconds per phase, in the order of an update."""


def gather(curves: Curves, *, running: bool) -> RunFacts:
    """Return the facts of a record; `running` is whether a recorder holds it."""
    header, end = curves.header, curves.end
    if end:
        state, text = end.reason, end.reason + (f": {end.message}" if end.message else "")
    elif running:
        state, text = "running", "running"
    else:
        state, text = "killed", "killed: there is no end record"
    return RunFacts(
        env=header.env if header else "unknown environment",
        run=header.run if header else "",
        state=state,
        state_text=text,
        tiles=_tiles(curves),
        split=_split(curves.updates),
    )


def _tiles(curves: Curves) -> list[tuple[str, str, str]]:
    updates, header = curves.updates, curves.header
    tiles = [("score", *_score(curves))]
    if len(updates):
        # The last updates of a stopped run may not have separate lines; its end counts them.
        steps = int(updates.env_steps[-1]) if curves.end is None else curves.end.env_steps
        seconds = float(updates.elapsed[-1])
        goal = f"of {header.total_steps:,}" if header and header.total_steps else ""
        tiles.append(("env steps", f"{steps:,}", goal))
        tiles.append(("updates", f"{int(updates.updates[-1]):,}", ""))
        tiles.append(("wall time", clock_time(seconds), f"{curves.sessions} sessions" if curves.sessions > 1 else ""))
        if seconds > 0:
            # Steps before the first line: other than 0 only if an older record was lost.
            earlier = 0 if updates.updates[0] <= updates["covers"][0] else int(updates.env_steps[0])
            tiles.append(("steps/s", f"{(steps - earlier) / seconds:,.0f}", ""))
    if header and header.path:
        tiles.append(("path", header.path, header.path_reason))
    if header and header.exact is not None:
        tiles.append(("resume", "exact" if header.exact else "not exact", header.exact_reason))
    return tiles


def _score(curves: Curves) -> tuple[str, str]:
    """Return value and note of the last evaluation; without one, of about the last hundred training episodes."""
    evals = curves.evals
    if len(evals) and np.isfinite(evals["return_mean"][-1]):
        value = f"{number(evals['return_mean'][-1])} ± {number(evals['return_std'][-1])}"
        note = f"{int(evals['episodes'][-1])} evaluation episodes at {int(evals.env_steps[-1]):,} steps"
        best = np.nanmax(evals["return_mean"])
        return value, note + (f"; best {number(best)}" if best > evals["return_mean"][-1] else "")
    recent = recent_return(curves.updates["episodes.count"], curves.updates["episodes.return_mean"])
    if recent is None:
        return "none yet", "no episode has ended"
    return number(recent[0]), f"last {recent[1]} training episodes"


def recent_return(counts: np.ndarray, returns: np.ndarray) -> tuple[float, int] | None:
    """Return the mean return of about the last hundred episodes and their number, from one entry per update."""
    counts = np.nan_to_num(counts)
    recent = np.flatnonzero(np.isfinite(returns) & (counts > 0))[::-1]
    if len(recent) == 0:
        return None
    last = recent[: int(np.searchsorted(np.cumsum(counts[recent]), 100)) + 1]
    return float(np.average(returns[last], weights=counts[last])), int(counts[last].sum())


def _split(updates: RecordTable) -> list[tuple[str, float]]:
    """Return the sums of `seconds`. `collect` includes `env` and `policy`, so only its remainder is listed beside them."""
    if len(updates) == 0:
        return []
    prefix = "seconds."
    sums = {n.removeprefix(prefix): float(np.nansum(x)) for n, x in updates.columns.items() if n.startswith(prefix)}
    inner = sums.get("env", 0.0) + sums.get("policy", 0.0)
    if "collect" in sums and inner:
        sums["collect"] = max(0.0, sums["collect"] - inner)
    order = ("env", "policy", "collect", "prepare", "learn")
    parts = [(n, sums.pop(n)) for n in order if n in sums] + sorted(sums.items())
    other = float(updates.elapsed[-1]) - sum(seconds for _, seconds in parts)
    parts = [("collect, rest" if n == "collect" and inner else n, s) for n, s in parts]
    return [(n, s) for n, s in [*parts, ("other", other)] if s > 0]


def clock_time(seconds: float) -> str:
    """Return seconds as text: "4.2 s", "3 min 5 s", "2 h 10 min"."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, hours = int(seconds // 60), int(seconds // 3600)
    return f"{minutes} min {int(seconds % 60)} s" if hours == 0 else f"{hours} h {minutes % 60} min"


def number(x: float) -> str:
    """Return a number with about three digits."""
    if x == 0 or 0.001 <= abs(x) < 100:
        return f"{x:.3g}"
    if 100 <= abs(x) < 1e6:
        return f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.1f}"
    return f"{x:.2e}"
