"""Tests of `surefoot.decide.prompts.text`."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.decide.prompts.text import tokens

from .world_cases import a_world


def test_the_reward_is_the_gain_less_what_its_tokens_cost():
    world = a_world(1, token_cost=0.01)
    world.reset(0)
    before, text = world.scores[0], world.texts[0]
    step = world.step(np.array([0]))
    cost = 0.01 * (tokens(world.texts[0]) - tokens(text))
    assert step.reward[0] == pytest.approx(world.scores[0] - before - cost)
    assert not step.terminated[0]
