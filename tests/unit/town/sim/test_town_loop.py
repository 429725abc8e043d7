"""surefoot.town.sim.town_loop."""

from surefoot.town.scenarios.scenario import load_scenario
from surefoot.town.sim.town_loop import SimulationLoop, record_behaviour


def test_a_loop_runs_one_town_to_the_end_of_its_day() -> None:
    loop = SimulationLoop(load_scenario("queue_conflict"), "script")
    frames = list(loop)
    assert [frame.tick for frame in frames] == list(range(80))
    assert {h.kind for frame in frames for h in frame.happened} >= {"use_done", "queue_conflict"}


def test_recorded_episodes_of_the_script_are_whole() -> None:
    recording = record_behaviour(load_scenario("queue_conflict"), "script", 3, seed=0)
    assert len(recording.episodes) == 9
    assert {episode.steps for episode in recording.episodes} == {80}
    assert all(episode.truncated for episode in recording.episodes)
