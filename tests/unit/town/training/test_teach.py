"""Teachers: the script's episodes, and schedules of cloning and PPO."""

import pytest

from surefoot.errors import ConfigError
from surefoot.town.scenarios.scenario import load_scenario
from surefoot.town.training.teach import parse_stages, teacher_recording


def test_without_samples_the_script_is_the_teacher():
    scenario = load_scenario("queue_conflict")
    recording = teacher_recording(scenario, episodes=2, seed=0)
    assert len(recording.episodes) == 2 * 3
    assert all(len(episode.action) == scenario.ticks for episode in recording.episodes)


@pytest.mark.parametrize("text", ["bc", "bc:x", "dqn:3", ""])
def test_a_stage_needs_a_known_mode_and_a_number(text: str):
    with pytest.raises(ConfigError, match="MODE:EPOCHS"):
        parse_stages(text)


def test_epochs_replace_those_of_ppo_stages_only():
    assert [(stage.mode, stage.epochs) for stage in parse_stages("bc:3,ppo:20", 7)] == [("bc", 3), ("ppo", 7)]
