"""What a log of decisions comes to: success per option, learning curve, regret, confusion, calibration."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from surefoot.decide.policy.calibration import Calibration

POINTS = 20


def summary_of(rows: Sequence[dict[str, Any]], marks: Sequence[int] = (100, 300, 500, 1000, 2000)) -> dict[str, Any]:
    """From rows with chosen, reward (0 … 1), confidence and, where known, right and nearest."""
    reward = np.array([row["reward"] for row in rows], float)
    known = [row for row in rows if row.get("right") is not None]
    calibration = Calibration(memory=10**9)
    for row in rows:
        calibration.add(row["confidence"], row["reward"])
    return {
        "decisions": len(rows),
        "success": float(reward.mean()) if len(rows) else float("nan"),
        "curve": curve(reward),
        "marks": {str(m): float(reward[max(0, m - 100) : m].mean()) for m in marks if m <= len(rows)},
        "regret": float(sum(1.0 - row["reward"] for row in known)) if known else None,
        "regret_curve": regret_curve(known),
        "nearest_curve": curve(np.array([row["nearest"] == row["right"] for row in rows], float))
        if rows and all("nearest" in row for row in rows)
        else [],
        "nearest": float(np.mean([row["nearest"] == row["right"] for row in known]))
        if known and "nearest" in known[0]
        else None,
        "tools": per_option(rows),
        "confusion": confusion(known),
        "matrix": matrix(known),
        "calibration": [[float(x), float(y)] for x, y in calibration.curve()],
        "calibration_error": calibration.error(),
        "explored": float(np.mean([row["probability"] < 0.5 for row in rows])) if rows else 0.0,
    }


def curve(reward: np.ndarray) -> list[tuple[int, float]]:
    """(decisions, success since the last point), at most 20 points."""
    if not len(reward):
        return []
    ends = np.unique(np.linspace(0, len(reward), min(POINTS, len(reward)) + 1).astype(int))
    return [(int(b), float(reward[a:b].mean())) for a, b in pairwise(ends)]


def per_option(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """How often each was chosen and how well that went; most chosen first."""
    found: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        found[row["chosen"]].append(row["reward"])
    wanted = Counter(row["right"] for row in rows if row.get("right") is not None)
    table = [
        {"name": name, "chosen": len(some), "success": float(np.mean(some)), "right": wanted.get(name, 0)}
        for name, some in found.items()
    ]
    return sorted(table, key=lambda each: -each["chosen"])


def confusion(rows: Sequence[dict[str, Any]], most: int = 10) -> list[dict[str, Any]]:
    """The commonest mistakes: right, chosen, how often."""
    wrong = Counter((row["right"], row["chosen"]) for row in rows if row["right"] != row["chosen"])
    return [{"right": right, "chosen": chosen, "count": n} for (right, chosen), n in wrong.most_common(most)]


def regret_curve(rows: Sequence[dict[str, Any]]) -> list[tuple[int, float]]:
    """(decisions, how many of them were not the right one so far), from 0."""
    if not rows:
        return []
    total = np.concatenate([[0.0], np.cumsum([1.0 - row["reward"] for row in rows])])
    at = np.unique(np.linspace(0, len(rows), min(100, len(rows)) + 1).astype(int))
    return [(int(n), float(total[n])) for n in at]


def matrix(rows: Sequence[dict[str, Any]], most: int = 12) -> dict[str, Any]:
    """How often each option was chosen (columns) where each was right (rows); the less wanted ones are `others`."""
    wanted = Counter(row["right"] for row in rows)
    names = [name for name, _ in wanted.most_common(most)]
    place = {name: i for i, name in enumerate(names)}
    if len(set(wanted) | {row["chosen"] for row in rows}) > len(names):
        names.append("others")
    counts = [[0] * len(names) for _ in names]
    for row in rows:
        counts[place.get(row["right"], len(names) - 1)][place.get(row["chosen"], len(names) - 1)] += 1
    return {"names": names, "counts": counts}


def as_text(summary: dict[str, Any], most: int = 12) -> str:
    """For a terminal."""
    bars = "▁▂▃▄▅▆▇█"
    line = "".join(bars[min(7, int(value * 8))] for _, value in summary["curve"])
    told = [f"{summary['decisions']:,} decisions, success {summary['success']:.1%}   {line}"]
    if summary["nearest"] is not None:
        told.append(f"nearest description alone: {summary['nearest']:.1%}; regret {summary['regret']:,.0f} decisions")
    told += [f"  after {mark:>5}: {value:.1%} of the last 100" for mark, value in summary["marks"].items()]
    told += ["", f"  {'option':<34} chosen  right  success"]
    told += [
        f"  {t['name'][:34]:<34} {t['chosen']:6} {t['right']:6}  {t['success']:6.1%}" for t in summary["tools"][:most]
    ]
    if summary["confusion"]:
        told += ["", "  commonest mistakes"]
        told += [f"  {c['count']:5} × {c['chosen']} where {c['right']} was right" for c in summary["confusion"]]
    told += ["", f"  calibration error {summary['calibration_error']:.3f}; explored in {summary['explored']:.1%}"]
    return "\n".join(told)
