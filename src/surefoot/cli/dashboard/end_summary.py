"""What is left on the terminal when training is over: the result, where it lies, and what to type next."""

from __future__ import annotations

import shlex

from surefoot.cli.dashboard.history import RunHistory
from surefoot.cli.dashboard.numbers import duration, number
from surefoot.telemetry.doctor.findings import gravity

Fact = tuple[str, str]
"""A name and what there is to say about it."""


def facts(history: RunHistory, ending: str) -> list[Fact]:
    """How it ended, what came of it, and the commands that go on from here."""
    run = history.header.run_dir
    saved = history.checkpoint
    where = "none saved by this process" if saved is None else f"{run}/checkpoints/{saved:06}"
    return [
        ("ending", ending),
        *_results(history),
        *_doctor(history),
        ("checkpoint", where),
        ("next", f"surefoot eval {shlex.quote(run)}"),
        ("", f"surefoot play {run}"),
        ("", f"surefoot resume {shlex.quote(run)}"),
        *([("", f"open {run}/report.html")] if history.header.recorded else []),
    ]


def _doctor(history: RunHistory) -> list[Fact]:
    """What is wrong at the end, and where to read it in full."""
    found = sorted(history.findings.values(), key=lambda f: (not f.primary, -gravity(f.severity)))
    if not found:
        return []
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return [("doctor", f"{found[0].title}{more}: surefoot doctor {shlex.quote(history.header.run_dir)}")]


def _results(history: RunHistory) -> list[Fact]:
    last = history.last
    if last is None:
        return [("result", "no update was made")]
    pace = f"{duration(last.seconds)} ({history.overall_rate:,.0f} steps/s)"
    took = f"{last.env_steps:,} of {last.total_steps:,}, this process in {pace}"
    out: list[Fact] = [("steps", took)]
    if last.recent_return is not None:
        over = min(100, last.episodes)
        out.append(("return", f"{number(last.recent_return)} (mean of the last {over} of {last.episodes:,} episodes)"))
    if last.recent_success is not None:
        out.append(("success", f"{last.recent_success * 100:.0f} % of them"))
    best = history.best_evaluation
    if best is not None:
        spread = f"{number(best.mean)} ± {number(best.std)}"
        out.append(("best eval", f"{spread} over {best.episodes} episodes, at {best.env_steps:,} steps"))
    target = history.header.target
    if target is not None:
        reached = max((e.mean for e in history.evaluations), default=history.best_return)
        verb = "reached" if reached is not None and reached >= target else "not reached"
        out.append(("target", f"{number(target)} {verb}"))
    return out
