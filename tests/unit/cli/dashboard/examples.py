"""A run for the tests of the dashboard: 1000 steps, two episodes and a tenth of a second per update."""

from __future__ import annotations

from typing import Any

from surefoot.cli.dashboard.frame import frame
from surefoot.cli.dashboard.history import RunHeader, RunHistory
from surefoot.learn.report import UpdateReport
from surefoot.telemetry.doctor.findings import Finding
from surefoot.train.progress_event import EvalPoint, Moment

TOTAL = 100_000

HEADER = RunHeader(
    env="CartPole-v1",
    run_dir="runs/x",
    settings={"lr": "3e-4", "clip": "0.2"},
    seed=3,
    path_note="torch, 1 thread",
    world_note="own CartPole-v1, 8 envs",
    preset="classic",
    target=475.0,
)


def moment(update: int = 1, **changes: Any) -> Moment:
    """1000 steps and a tenth of a second an update; two episodes each."""
    report = UpdateReport(
        update=update,
        policy_version=update,
        samples=1000,
        path="torch",
        path_reason="",
        approx_kl=0.0081,
        clip_fraction=0.11,
        entropy=0.6,
        explained_variance=0.62,
        value_loss=1.0,
        target_std=5.0,
        grad_norm=0.4,
        lr=3e-4,
        seconds={"env": 0.02, "policy": 0.03, "collect": 0.06, "prepare": 0.01, "learn": 0.03},
    )
    parts: dict[str, Any] = {
        "report": report,
        "env_steps": 1000 * update,
        "total_steps": TOTAL,
        "seconds": 0.1 * update,
        "episodes": 2 * update,
        "recent_return": 87.4,
        "recent_length": 87.4,
        "recent_success": None,
        "new_returns": (50.0, 120.0),
        "evaluation": None,
        "checkpoint": None,
        "notes": (),
    }
    return Moment(**(parts | changes))


def evaluation(mean: float = 480.0, env_steps: int = 5000) -> EvalPoint:
    return EvalPoint(env_steps=env_steps, mean=mean, std=2.0, minimum=470.0, maximum=490.0, episodes=10, is_best=True)


def plain(history: RunHistory, width: int, height: int) -> list[str]:
    return ["".join(text for text, _ in line) for line in frame(history, width, height, 1.0)]


def after(updates: int, **changes: Any) -> RunHistory:
    history = RunHistory(HEADER)
    for update in range(1, updates + 1):
        history.add(moment(update, **changes))
    return history


def a_finding(**changes: Any) -> Finding:
    known = {"rule": "R03", "severity": "error", "title": "Updates move the policy too far", "since_update": 12}
    return Finding(**{**known, "patch": {"lr": 1e-4}, **changes})
