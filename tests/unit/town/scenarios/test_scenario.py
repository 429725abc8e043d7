"""surefoot.town.scenarios.scenario."""

import json

import pytest

from surefoot.errors import ScenarioError
from surefoot.town.scenarios.scenario import Scenario, load_scenario, shipped


def test_six_scenarios_come_along_and_the_large_one_is_large() -> None:
    assert set(shipped()) >= {
        "queue_conflict",
        "employment_punctuality",
        "rivalry_decay",
        "observation_baseline",
        "kitchen_breakfast",
        "market_town",
    }
    large = load_scenario("market_town")
    assert len(large.agents) >= 10
    assert {"bed", "grocer", "cafe", "desk", "bench"} <= set(large.types)


@pytest.mark.parametrize("name", ["queue_conflict", "market_town"])
def test_a_scenario_survives_json(name: str) -> None:
    scenario = load_scenario(name)
    assert Scenario.from_json(json.loads(json.dumps(scenario.to_json()))) == scenario


def test_an_empty_town_is_refused_unless_agents_are_seeded(tmp_path) -> None:
    file = tmp_path / "empty.yaml"
    file.write_text("name: empty\nticks: 5\n")
    with pytest.raises(ScenarioError, match="--auto-seed-agents"):
        load_scenario(file)
    seeded = load_scenario(file, auto_seed_agents=True)
    assert [resident.id for resident in seeded.agents] == ["alice", "bob"]


def test_an_unknown_scenario_lists_the_known_ones() -> None:
    with pytest.raises(ScenarioError, match="queue_conflict"):
        load_scenario("zzz")


def test_a_misspelled_scenario_suggests_the_nearest_one() -> None:
    with pytest.raises(ScenarioError, match=r"did you mean rivalry_decay\?"):
        load_scenario("rivalry_dekay")
