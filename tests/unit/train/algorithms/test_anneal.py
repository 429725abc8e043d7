"""Stages of cloning and PPO: a bad clone is undone, and a loss or a score that drifts is reported."""

import pytest

from surefoot.errors import ConfigError
from surefoot.town.scenarios.scenario import load_scenario
from surefoot.town.sim.town_loop import record_behaviour
from surefoot.town.training.capture import policy_hash
from surefoot.town.training.spec import town_spec, town_training
from surefoot.train.algorithms.anneal import AnnealRules, Stage, StageResult, anneal, verdict
from surefoot.train.training import Training

SMALL = {"hidden": "8", "epochs": 1, "minibatch_size": 200, "lr": 1e-3}


def town() -> Training:
    scenario = load_scenario("queue_conflict")
    return town_training(town_spec(scenario, settings=SMALL, towns=2, rollout_ticks=10, steps=10_000, eval_every=0))


def test_an_anneal_passes_from_the_teacher_to_ppo_and_takes_a_bad_clone_back() -> None:
    scenario = load_scenario("queue_conflict")
    training = town()
    recording = record_behaviour(scenario, "script", 4, seed=0)
    scores = iter([-3.0, -2.9, -9.0])
    stages = [Stage(mode="bc", epochs=3), Stage(mode="ppo", epochs=1), Stage(mode="ppo", epochs=1)]
    results = list(
        anneal(training, recording, stages, AnnealRules(accuracy=0.1, loss_drift=1e9), score=lambda: next(scores))
    )
    assert [result.status for result in results] == ["PASS", "PASS", "HOLD"]
    assert results[2].reasons == ["score_flag_cycle_2"]
    assert verdict(results) == "HOLD"
    before = policy_hash(training.policy)
    failed = list(anneal(training, recording, stages, AnnealRules(accuracy=1.1), score=lambda: 0.0))
    assert [result.status for result in failed] == ["FAIL"]
    assert failed[0].rolled_back
    assert policy_hash(training.policy) == before
    assert verdict(failed) == "FAIL"


def test_every_update_of_ppo_is_reported() -> None:
    reports, stages = [], [Stage(mode="ppo", epochs=2)]
    recording = record_behaviour(load_scenario("queue_conflict"), "script", 1, seed=0)
    list(anneal(town(), recording, stages, score=lambda: 0.0, on_update=reports.append))
    assert [report.update for report in reports] == [1, 2]


def test_the_verdict_is_that_of_the_worst_stage() -> None:
    results = [StageResult(cycle=i, mode="ppo", status=status) for i, status in enumerate(("PASS", "HOLD", "PASS"))]
    assert [verdict(results[:1]), verdict(results), verdict([])] == ["PASS", "HOLD", "FAIL"]


@pytest.mark.parametrize("wrong", [{"mode": "dqn"}, {"mode": "bc", "epochs": 0}, {"mode": "bc", "bc_weight": 0.0}])
def test_a_stage_that_cannot_run_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="stage"):
        Stage(**wrong)
