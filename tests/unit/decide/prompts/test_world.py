"""Tests of `surefoot.decide.prompts.world`."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.decide.encoders.encoder import HashingEncoder
from surefoot.decide.prompts.mutations import ACTIONS
from surefoot.decide.prompts.scorers import FeatureScorer
from surefoot.decide.prompts.text import tokens
from surefoot.decide.prompts.world import FACTS, PromptWorld
from surefoot.errors import ConfigError, IllegalAction

from .world_cases import PROMPTS, a_world

STOP = ACTIONS.index("stop")


def test_stop_terminates_an_episode_with_reward_0_and_starts_the_next_prompt():
    world = a_world(1)
    world.reset(0)
    step = world.step(np.array([STOP]))
    assert (step.reward[0], step.terminated[0], step.truncated[0]) == (0.0, True, False)
    assert world.texts == [PROMPTS[1]]


def test_the_step_limit_truncates_an_episode_and_reports_its_final_observation():
    world = a_world(1, max_steps=2)
    world.reset(0)
    world.step(np.array([0]))
    step = world.step(np.array([2]))
    assert (step.terminated[0], step.truncated[0]) == (False, True)
    assert step.final_obs is not None
    assert step.final_obs["facts"][0, FACTS.index("time")] == 1.0
    assert step.view.obs["facts"][0, FACTS.index("time")] == 0.0


def test_a_masked_mutation_is_refused():
    world = a_world(1)
    world.reset(0)
    with pytest.raises(IllegalAction, match="task-decomposition in stream 0"):
        world.step(np.array([4]))


def test_a_world_continues_from_its_state():
    world, other = a_world(2), a_world(2)
    world.reset(3)
    rng = np.random.default_rng(0)
    view = world.step(np.array([0, 2])).view
    state = world.state()
    restored = other.set_state(state)
    for _ in range(8):
        assert all(np.array_equal(restored.obs[name], view.obs[name]) for name in view.obs)
        assert view.action_mask is not None
        action = np.array([rng.choice(np.flatnonzero(row)) for row in view.action_mask])
        one, two = world.step(action), other.step(action)
        assert np.array_equal(one.reward, two.reward)
        view, restored = one.view, two.view
    assert world.scorer_calls == other.scorer_calls


def test_an_empty_list_of_prompts_is_refused():
    with pytest.raises(ConfigError, match="no prompt"):
        PromptWorld([" "], FeatureScorer(), HashingEncoder(16))


def test_the_reward_is_the_gain_minus_the_cost_of_its_tokens():
    world = a_world(1, token_cost=0.01)
    world.reset(0)
    before, text = world.scores[0], world.texts[0]
    step = world.step(np.array([0]))
    cost = 0.01 * (tokens(world.texts[0]) - tokens(text))
    assert step.reward[0] == pytest.approx(world.scores[0] - before - cost)
    assert not step.terminated[0]
