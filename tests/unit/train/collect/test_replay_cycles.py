"""Live and replayed updates in turn: evenly spread, reported, resumed to the bit."""

import pytest

from surefoot.errors import ConfigError, ReplayError
from surefoot.town.scenarios.scenario import load_scenario
from surefoot.town.training.capture import capture_behaviour, policy_hash
from surefoot.town.training.spec import town_spec, town_training
from surefoot.train.collect.offpolicy import ReplayRules
from surefoot.train.collect.replay_cycles import Cycles

SMALL = {"hidden": "8", "epochs": 1, "minibatch_size": 200, "lr": 1e-3}


def cycles(**options: object) -> Cycles:
    spec = town_spec(
        load_scenario("queue_conflict"), settings=SMALL, towns=2, rollout_ticks=10, steps=10_000, eval_every=0
    )
    return Cycles(town_training(spec), **options)


def test_replayed_updates_are_spread_evenly() -> None:
    made = cycles(replay=0.4, recent=2)
    turns = [made.is_replay(n) for n in range(10)]
    assert turns == [False, False, True, False, True, False, False, True, False, True]
    assert made.mode == "mixed"


def test_mixed_learns_from_recent_rollouts_and_only_live_steps_count() -> None:
    made = cycles(replay=0.5, recent=2)
    reports = [made.update() for _ in range(6)]
    assert [report.stats.get("from_replay", 0.0) for report in reports] == [0, 1, 0, 1, 0, 1]
    assert made.env_steps == 3 * 60
    assert [report.stats["cycle_id"] for report in reports] == [0, 0, 1, 1, 2, 2]
    assert reports[1].policy_lag == 1
    assert reports[0].stats["rollout_ticks"] == 10
    assert reports[1].stats["rollout_ticks"] == 0
    assert "queue_conflict_events" not in reports[1].stats


@pytest.mark.parametrize("after", [2, 3])
def test_a_mixed_run_goes_on_to_the_bit(after: int) -> None:
    straight, first, second = (cycles(replay=0.5, recent=2) for _ in range(3))
    for _ in range(6):
        straight.update()
    for _ in range(after):
        first.update()
    second.set_state(first.state())
    for _ in range(6 - after):
        second.update()
    assert policy_hash(straight.policy) == policy_hash(second.policy)


def test_samples_of_chance_are_learned_from_with_their_own_log_probs() -> None:
    samples = capture_behaviour(load_scenario("queue_conflict"), "random", 20, seed=1, towns=2)
    made = cycles(replay=1.0, dataset=samples.build_dataset(batch_size=6), updates=2)
    reports = list(made)
    assert len(reports) == 2
    assert reports[0].samples == 120
    assert 0.5 < reports[0].stats["replay_sample_size"] <= 1.0
    assert reports[0].stats["baseline_sample_count"] == 6.0
    assert made.mode == "replay"
    assert made.env_steps == 0


def test_samples_that_are_all_stale_end_it_with_a_sentence() -> None:
    samples = capture_behaviour(load_scenario("queue_conflict"), "random", 20, seed=1)
    made = cycles(replay=1.0, dataset=samples.build_dataset(3), updates=2, rules=ReplayRules(min_sample_size=1.0))
    with pytest.raises(ReplayError, match="every sample is stale"):
        list(made)


def test_samples_of_another_scenario_do_not_fit() -> None:
    samples = capture_behaviour(load_scenario("kitchen_breakfast"), "random", 20, seed=1)
    made = cycles(replay=1.0, dataset=samples.build_dataset(2), updates=1)
    with pytest.raises(ReplayError, match="do not fit this policy"):
        made.update()


def test_what_makes_no_sense_is_refused() -> None:
    for wrong in ({"replay": 2.0}, {"replay": 0.5}, {"replay": 1.0, "recent": 2}):
        with pytest.raises(ConfigError):
            cycles(**wrong)
