"""Tests of `surefoot.decide.policy.ppo`: ratios that begin at one, options that come later, whole episodes."""

from __future__ import annotations

import numpy as np

from surefoot.decide.policy.choosers import Experience
from surefoot.decide.policy.ppo import ChooserConfig, PPOChooser

from .choosers_cases import DIM, LIKE, ppo, scene


def test_a_fresh_update_begins_with_ratios_of_one_and_reuse_adds_the_log():
    chooser, reports = ppo(fresh=16, reuse=32, sharpness=20.0), []
    rng = np.random.default_rng(0)
    for t in range(48):
        at = scene(t)
        choice = chooser.choose(at, rng)
        reports.append(chooser.learn([[Experience(scene=at, choice=choice, reward=float(choice.at == 1))]]))
    made = [report for report in reports if report is not None]
    assert len(made) == 3
    assert max(report.first_ratio_error for report in made) < 1e-4
    assert made[-1].samples == 16 + 32
    assert 0 < made[-1].stats["reuse_sample_size"] <= 1


def test_options_beyond_the_first_ones_get_weights_when_they_come():
    chooser = PPOChooser(DIM, LIKE, options=2, config=ChooserConfig(fresh=4, reuse=4))
    rng = np.random.default_rng(0)
    for t in range(8):
        at = scene(t, options=7)
        choice = chooser.choose(at, rng)
        chooser.learn([[Experience(scene=at, choice=choice, reward=1.0)]])
    assert chooser.policy.options >= 7


def test_episodes_of_several_steps_are_learned_from_as_a_whole():
    chooser = ppo(fresh=4, reuse=0, sharpness=5.0)
    rng, at = np.random.default_rng(0), scene()
    steps = [Experience(scene=at, choice=chooser.choose(at, rng), reward=r) for r in (0.0, 0.0, 0.0, 1.0)]
    report = chooser.learn([steps])
    assert report is not None
    assert report.samples == 4
    first = chooser.model.predict(at)[steps[0].choice.at]
    assert first > 0.2, "the first step's worth is the return of the episode"
