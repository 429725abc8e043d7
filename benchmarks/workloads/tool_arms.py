"""Who chooses in benchmarks/tools.py, and what each may be tuned among: eight settings an arm, on queries never scored."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.decide.encoders.encoder import Likeness
from surefoot.decide.policy.choosers import Chooser, EpsilonGreedy, LinTS, LinUCB, Residual, ZeroShot
from surefoot.decide.policy.outcome_model import OutcomeConfig
from surefoot.decide.policy.ppo import ChooserConfig, PPOChooser
from surefoot.decide.policy.replay import ReplayChooser, ReplayConfig
from workloads.tool_streams import Task

SETTINGS = Path(__file__).with_name("tool_settings.json")
"""Made by tools.py: every setting's success on the queries set aside, and the best one of each arm."""
DECISIONS, FIRST_ORDER, GUARD = 1500, 1000, (1003, 1004)
"""Of each pass over the queries set aside, its first order, and two more; orders of the scored passes are 0, 1, …"""
MIDDLES = (0.4, 0.5)
"""A cosine is read as sigmoid(10 (cos - middle)): what a tool may be worth if tried. 0.4 is what MiniLM comes with here."""


def _grid(**choices: tuple[float, ...]) -> list[dict[str, float]]:
    return [dict(zip(choices, each, strict=True)) for each in product(*choices.values())]


GRIDS: dict[str, list[dict[str, float]]] = {
    "ppo": _grid(ridge=(0.4, 1.0), sharpness=(40.0, 80.0), patience=(6.0, 13.0)),
    "residual": _grid(ridge=(0.2, 0.5, 1.0, 2.0), middle=MIDDLES),
    "linucb": _grid(ridge=(0.5, 1.0), alpha=(0.05, 0.2), middle=MIDDLES),
    "lints": _grid(ridge=(0.5, 1.0), spread=(0.03, 0.1), middle=MIDDLES),
    "egreedy": _grid(ridge=(0.5, 1.0), epsilon=(0.02, 0.05), middle=MIDDLES),
    "vw": _grid(gamma=(100.0, 1000.0), rate=(0.5, 2.0), middle=MIDDLES),
}
COST = {
    "nearest": (0.1, 0.0),
    "ours": (0.15, 0.001),
    "ppo": (1.2, 0.01),
    "residual": (0.4, 0.002),
    "linucb": (0.5, 0.06),
    "lints": (0.5, 0.06),
    "egreedy": (0.5, 0.003),
    "vw": (0.6, 0.1),
}
"""CPU-milliseconds a decision, and more of them a tool: for the estimate only."""


def arm_names() -> list[str]:
    """Those that can run here: Vowpal Wabbit only where it is installed."""
    try:
        import vowpalwabbit  # noqa: F401  # pyright: ignore[reportUnusedImport, reportMissingImports]
    except ImportError:
        return [name for name in ("nearest", "ours", *GRIDS) if name != "vw"]
    return ["nearest", "ours", *GRIDS]


def make(arm: str, task: Task, seed: int, setting: dict[str, float]) -> Chooser:
    """A fresh chooser with these settings."""
    dim, own, rest = task.x.shape[1], task.likeness, dict(setting)
    read = Likeness(own.sharpness, 10.0, rest.pop("middle", own.middle))
    linear: dict[str, Callable[..., Chooser]] = {
        "residual": Residual,
        "linucb": LinUCB,
        "lints": LinTS,
        "egreedy": EpsilonGreedy,
    }
    if arm in linear:
        return linear[arm](dim, read, **rest)
    if arm == "ours":
        return ReplayChooser(dim, own, config=ReplayConfig(seed=seed))
    if arm == "ppo":
        config = ChooserConfig(sharpness=rest["sharpness"]) if rest else ChooserConfig()
        model = OutcomeConfig(ridge=rest["ridge"], patience=rest["patience"]) if rest else OutcomeConfig()
        return PPOChooser(dim, own, options=len(task.tools), config=config, outcomes=model)
    if arm == "vw":
        from workloads.vw_chooser import VW

        return VW(dim, read, seed=seed, **rest)
    return ZeroShot(dim, own)


def chosen() -> dict[str, dict[str, float]]:
    """The setting of each arm that did best on the queries set aside."""
    kept: dict[str, Any] = json.loads(SETTINGS.read_text()) if SETTINGS.exists() else {"arms": {}}
    return {arm: each["chosen"] for arm, each in kept["arms"].items() if "chosen" in each} | {"nearest": {}, "ours": {}}


Course = tuple[Task, str]
"""A task and the scenario it is tried in."""


def tune(
    courses: list[Course],
    arms: list[str],
    play: Callable[..., dict[str, Any]],
    judge: Callable[[dict[str, Any]], tuple[float, float]],
) -> None:
    """Eight settings over one order of the queries set aside, the best four over two more; the best mean is taken.

    `judge` gives success and the worst window against the nearest description. PPO's setting is not taken if it was more
    than a point below it in any of five orders. Ours has the shipped defaults and is not tuned. Every pass is written down
    and made once.
    """
    kept: dict[str, Any] = json.loads(SETTINGS.read_text()) if SETTINGS.exists() else {"arms": {}}
    kept |= {"courses": [f"{task.name}/{scenario}" for task, scenario in courses], "decisions": DECISIONS}
    for arm in (arm for arm in arms if arm in GRIDS):
        found: dict[str, Any] = kept["arms"].setdefault(arm, {"tried": {}})
        rows: dict[str, dict[str, list[float]]] = found["tried"]
        lowest: dict[str, float] = found.setdefault("worst_window", {})
        names = [json.dumps(setting) for setting in GRIDS[arm]]
        for orders in (1, 3):
            for name, (task, scenario) in product(names, courses):
                scores = rows.setdefault(name, {}).setdefault(f"{task.name}/{scenario}", [])
                while len(scores) < orders:
                    chooser = make(arm, task, 0, json.loads(name))
                    run = play(chooser, task.part(aside=True), scenario, FIRST_ORDER + len(scores), DECISIONS)
                    success, worst = judge(run)
                    scores.append(round(success, 4))
                    if scenario == "plain":
                        lowest[name] = round(min(lowest.get(name, 1.0), worst), 4)
                    SETTINGS.write_text(json.dumps(kept, indent=1) + "\n")
                    print(f"{arm} {name} on {task.name}/{scenario}: {scores}", flush=True)
            names = sorted(names, key=lambda name: -_mean(rows[name], orders))[:4]
        guarded: list[str] = found.setdefault("guarded", [])
        for name in names if arm == "ppo" else ():
            for (task, scenario), order in product(courses, () if name in guarded else GUARD):
                if scenario == "plain":
                    run = play(make(arm, task, 0, json.loads(name)), task.part(aside=True), scenario, order, DECISIONS)
                    lowest[name] = round(min(lowest.get(name, 1.0), judge(run)[1]), 4)
            guarded += [] if name in guarded else [name]
            if lowest[name] >= -0.01:
                break
        held = [name for name in names if arm != "ppo" or (name in guarded and lowest[name] >= -0.01)]
        found["chosen"] = json.loads((held or names)[0])
        SETTINGS.write_text(json.dumps(kept, indent=1) + "\n")


def passes_left(courses: list[Course], arms: list[str]) -> list[tuple[str, Task]]:
    """Passes that `tune` would make."""
    kept: dict[str, Any] = json.loads(SETTINGS.read_text()) if SETTINGS.exists() else {"arms": {}}
    left = list[tuple[str, Task]]()
    for arm, (task, scenario) in product((arm for arm in arms if arm in GRIDS), courses):
        rows = kept["arms"].get(arm, {"tried": {}})["tried"].values()
        left += [(arm, task)] * max(0, 16 - sum(len(row.get(f"{task.name}/{scenario}", ())) for row in rows))
    return left


def _mean(row: dict[str, list[float]], orders: int) -> float:
    return float(np.mean([np.mean(scores[:orders]) for scores in row.values()]))
