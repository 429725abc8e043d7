"""Tests of `surefoot.decide.tools.schedule`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from surefoot.decide.tools import TrainingSchedule

from .agent_cases import agent, core


def test_it_learns_in_the_background_and_continues_after_a_restart(encoder, tmp_path: Path):
    plan = TrainingSchedule(warmup=10, interval=5, min_samples=10, lr_after={20: 1e-4})
    with agent(encoder, directory=tmp_path / "run", learning=plan, chooser="ppo") as made:
        for _ in range(60):
            run = made.answer("some song")
            made.feedback(run, {"helpful": run.tool == "weather"})
            made.wait()
        made.learn(force=True)
        assert core(made).learner.updates > 0
        assert core(made).learner.knobs().lr == pytest.approx(1e-4)
        version, weight = made.version, core(made).policy.weight.detach().numpy().copy()
    with agent(encoder, directory=tmp_path / "run") as again:
        assert again.version == version
        assert np.array_equal(core(again).policy.weight.detach().numpy(), weight)
        assert len(again.runs) == 60
    assert (tmp_path / "run" / "telemetry.ndjson").exists()
