"""Townlet's harness over the town's training."""

import numpy as np

from surefoot.compat.townlet import TrainingHarness
from surefoot.telemetry.validate import validate
from surefoot.town.training.capture import policy_hash
from surefoot.train.algorithms.anneal import AnnealRules, Stage

SMALL = {"hidden": "8", "epochs": 1, "minibatch_size": 200, "lr": 1e-3}


def test_the_harness_keeps_one_policy_over_all_its_calls(tmp_path) -> None:
    harness = TrainingHarness("queue_conflict", settings=SMALL, towns=2, rollout_ticks=10)
    first = policy_hash(harness.policy)
    captured = harness.capture_rollout(10, output_dir=tmp_path)
    reports = harness.run_ppo(tmp_path / "rollout_sample_manifest.json", epochs=2, log_path=tmp_path / "ppo.jsonl")
    assert len(reports) == 6
    assert reports[0].first_ratio_error < 1e-5
    assert captured.samples[0].meta["capture_metadata"]["policy_hash"] == first
    live = harness.run_ppo(epochs=2, log_path=tmp_path / "ppo.jsonl")
    assert [report.update for report in live] == [7, 8]
    assert policy_hash(harness.policy) != first
    assert not [m for verdict_ in validate(tmp_path / "ppo.jsonl") for m in verdict_.mistakes if m.weight == "error"]
    assert set(harness.measure(2)) >= {"waiting", "return"}
    assert np.isfinite(harness.measure(2)["return"]).all()


def test_clones_and_schedules_go_by_the_old_names(tmp_path) -> None:
    harness = TrainingHarness("queue_conflict", settings=SMALL, towns=2, rollout_ticks=10)
    harness.capture_rollout(10, output_dir=tmp_path)
    assert harness.run_bc_training(tmp_path / "rollout_sample_manifest.json", epochs=1).agreement is not None
    stages = [Stage(mode="bc", epochs=1), Stage(mode="ppo", epochs=1)]
    results = harness.run_anneal(stages=stages, rules=AnnealRules(accuracy=0.0), log_path=tmp_path / "ppo.jsonl")
    assert [result.mode for result in results] == ["bc", "ppo"]
    assert validate(tmp_path / "ppo.jsonl")[0].records == 1  # one PPO update of one epoch
