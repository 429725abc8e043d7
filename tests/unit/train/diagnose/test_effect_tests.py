"""What actions do: in their own step, some steps later, the same in every episode and stream, and how much of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from walks import features, walk

from surefoot.train.diagnose.effect_tests import effect_stats as effects
from surefoot.train.diagnose.effect_tests import steps_apart
from surefoot.train.diagnose.step_features import Steps


def measured(steps: Steps) -> dict[str, float]:
    return effects(features(steps))


def test_a_sound_process_has_one_effect_everywhere():
    stats = measured(walk())
    assert stats["action_effect"] > 0.9
    assert stats["action_share"] > 0.1
    assert stats["action_effect_recent"] > 0.9
    assert stats["effect_by_episode"] < 0.1
    assert stats["stream_difference"] == 0.0


def test_an_effect_whose_sign_differs_between_episodes_is_named_and_the_common_one_is_small():
    stats = measured(walk(episode_effect=True))
    assert stats["effect_by_episode"] > 0.8
    assert stats["action_effect"] < 0.2


def test_an_effect_that_differs_between_streams_is_not_one_of_episodes():
    steps = walk()
    mirrored = steps.obs.copy()
    mirrored[:, ::2, 0] *= -1.0
    stats = measured(replace(steps, obs=mirrored))
    assert stats["stream_difference"] > 0.5
    assert stats["effect_by_episode"] == 0.0


def test_an_effect_that_is_a_thousandth_of_what_happens_anyway_is_weak_however_exact_it_is():
    stats = measured(walk(effect=0.003, noise=0.1))
    assert stats["action_share"] < 0.01


def test_an_action_that_comes_late_is_among_the_recent_ones():
    steps = walk()
    stats = measured(replace(steps, action=np.roll(steps.action, -3, axis=0)))
    assert stats["action_effect"] < 0.1
    assert stats["action_effect_recent"] > 0.3


def test_steps_apart_are_of_one_episode():
    follows = np.array([[True], [True], [False], [True]])
    assert steps_apart(follows, 1).ravel().tolist() == [True, False, False]
    assert steps_apart(follows, 4) is None
