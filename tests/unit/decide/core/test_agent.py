"""The agent: one answer an id, outcomes joined by it, options with indices that stay, and reasons."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.decide.core.agent import Agent, AgentConfig
from surefoot.decide.encoders.encoder import HashingEncoder
from surefoot.errors import CheckpointIncompatible, ConfigError, DecisionError, UnknownDecision, UnknownOption

OPTIONS = {
    "weather": "weather forecast, rain, sun and temperature",
    "music": "play songs, albums and music",
    "timer": "set a timer or an alarm for some minutes",
}


def agent(encoder: HashingEncoder, **config) -> Agent:
    made = Agent(encoder, config=AgentConfig(**config))
    for name, description in OPTIONS.items():
        made.options.add(name, description)
    return made


def test_the_same_id_gets_the_same_answer_and_no_second_draw(encoder):
    made = agent(encoder)
    first = made.decide("play some music", id="d1")
    assert made.decide("something else entirely", id="d1") is first


def test_a_mask_keeps_the_others_out_and_an_unknown_name_is_refused(encoder):
    made = agent(encoder)
    assert made.decide("play music", allowed=["timer"]).name == "timer"
    with pytest.raises(UnknownOption, match="no option 'fly'"):
        made.decide("play", allowed=["fly"])


def test_an_outcome_closes_its_decision_once_and_lies_within_its_bounds(encoder):
    made = agent(encoder)
    decided = made.decide("rain tomorrow?")
    with pytest.raises(DecisionError, match="between 0 and 1"):
        made.outcome(decided.id, 2.0)
    made.outcome(decided.id, 1.0)
    assert (made.waiting, made.unlearned) == (0, 1)
    with pytest.raises(UnknownDecision):
        made.outcome(decided.id, 1.0)
    version = made.version
    made.learn()
    assert made.version > version


def test_an_option_keeps_its_index_when_it_goes_and_comes_back(encoder):
    made = agent(encoder)
    index = made.options.index("music")
    made.options.remove("music")
    assert made.options.add("news", "the latest news") == 3
    assert made.options.add("music", "play songs") == index
    assert made.options.name(index) == "music"


def test_abstains_where_the_best_candidate_is_unlikely_to_be_right(encoder):
    assert agent(encoder, abstain_below=0.99).decide("quantum chromodynamics").name is None
    assert agent(encoder, abstain_below=0.2).decide("play songs and albums").name == "music"


def test_an_untrained_agent_answers_everything_by_default(encoder):
    made = agent(encoder)
    assert all(made.decide(f"quantum chromodynamics {i}").name is not None for i in range(30))


def test_a_trained_agent_refuses_by_default_what_is_unlike_its_successes_and_answers_one_in_ten(encoder):
    made = agent(encoder)
    for _ in range(300):  # scores of all that was right, and of some that was wrong
        made.calibration.add(0.9, 1.0)
        made.calibration.add(0.02, 0.0)
    records = [made.decide(f"quantum chromodynamics {i}") for i in range(400)]
    answered = [record for record in records if record.name is not None]
    assert 10 < len(answered) < 90
    weights = [record.choice.weight for record in answered]
    assert sum(weight > 9.9 for weight in weights) > 10, "one that is answered stands for ten"
    assert set(np.round(weights, 6)) <= {1.0, 10.0}
    assert made.choose("quantum chromodynamics", greedy=True).name is None
    assert agent(encoder, abstain_below=0.0).choose("quantum chromodynamics").name is not None


def test_calibration_turns_overconfidence_into_what_really_happened(encoder):
    made = agent(encoder)
    for _ in range(200):
        made.calibration.add(0.92, 0.0)
        made.calibration.add(0.93, 1.0)
    assert made.calibration(0.92) == pytest.approx(0.5, abs=0.1)
    assert made.calibration.error() > 0.3


def test_a_choice_waits_for_nothing_and_imitation_counts_agreement(encoder):
    made = agent(encoder)
    made.choose("play music")
    assert made.waiting == 0
    for _ in range(3):
        decided = made.imitate("play songs, albums and music", "music")
        made.outcome(decided.id, 1.0)
    made.imitate("play songs, albums and music", "timer")
    assert made.agreement.rate == pytest.approx(0.75)
    made.learn()
    with pytest.raises(DecisionError, match="not among the allowed"):
        made.imitate("x", "dance")


def test_an_explanation_names_prior_learned_part_chance_and_neighbours(encoder):
    made = agent(encoder)
    for _ in range(20):
        decided = made.decide("will it rain")
        made.outcome(decided.id, float(decided.name == "timer"))
        made.learn()
    found = made.explain(made.decide("will it rain today"))
    names = [row["name"] for row in found.candidates]
    assert sorted(names) == sorted(OPTIONS)
    assert any(row["learned"] != 0 for row in found.candidates)
    assert 0.0 <= found.exploration < 1.0
    assert found.nearest[0].text == "will it rain"
    assert "description" in str(found)


def test_a_saved_agent_goes_on_and_one_of_another_encoder_is_refused(encoder):
    made = agent(encoder)
    for i in range(40):
        decided = made.decide(f"question {i}")
        made.outcome(decided.id, float(decided.name == "timer"))
        made.learn()
    state, again = made.state(), agent(encoder)
    again.set_state(state)
    a, b = made.decide("question 3"), again.decide("question 3")
    assert (a.name, a.probability) == (b.name, b.probability)
    with pytest.raises(CheckpointIncompatible, match="encoder"):
        agent(HashingEncoder(32)).set_state(state)


def test_a_config_that_cannot_work_is_refused():
    with pytest.raises(ConfigError, match="chooser is 'magic'"):
        AgentConfig(chooser="magic")
    with pytest.raises(ConfigError, match="low is 1"):
        AgentConfig(low=1.0, high=0.0)
