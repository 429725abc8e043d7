"""Choosers: a guess from descriptions, a correction by ridge, true probabilities, and PPO whose ratios begin at one."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.decide.core.agent import make_chooser
from surefoot.decide.encoders.encoder import HashingEncoder
from surefoot.decide.policy.choosers import Experience, Residual
from surefoot.decide.policy.outcome_model import Scene
from surefoot.decide.policy.ppo import ChooserConfig, PPOChooser
from surefoot.errors import AllActionsMasked

from .choosers_cases import DIM, LIKE, ppo, scene


def test_probabilities_are_those_it_draws_by():
    chooser, at = ppo(sharpness=12.0, floor=0.05), scene(cosine=[0.5, 0.45, 0.4, -1.0])
    rng = np.random.default_rng(0)
    drawn = [chooser.choose(at, rng) for _ in range(1500)]
    counts = np.bincount([choice.at for choice in drawn], minlength=4) / 1500
    assert counts == pytest.approx(drawn[0].probabilities, abs=0.04)
    assert all(choice.probability == choice.probabilities[choice.at] for choice in drawn[:50])
    assert drawn[0].probabilities[3] == 0.0, "what is less likely than the floor is never drawn"


def test_no_candidate_at_all_is_an_error():
    with pytest.raises(AllActionsMasked, match="no candidate"):
        ppo().choose(scene(options=0), np.random.default_rng(0))


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


@pytest.mark.parametrize("name", ["ppo", "residual", "egreedy"])
def test_a_saved_chooser_goes_on_to_the_last_digit(name: str):
    like = HashingEncoder(8)

    def at(t: int) -> Scene:
        plain = scene(t)
        return Scene(x=np.resize(plain.x, 8), option=plain.option, cosine=plain.cosine)

    def play(chooser, rng, begin: int, end: int) -> list[float]:
        out = []
        for t in range(begin, end):
            choice = chooser.choose(at(t), rng)
            out.append(float(choice.worth.sum()))
            chooser.learn([[Experience(scene=at(t), choice=choice, reward=float(choice.at == 2))]])
        return out

    one, rng = make_chooser(name, like), np.random.default_rng(0)
    play(one, rng, 0, 70)
    two, state = make_chooser(name, like), rng.bit_generator.state
    two.set_state(one.state())
    other = np.random.default_rng(0)
    other.bit_generator.state = state
    assert play(one, rng, 70, 110) == play(two, other, 70, 110)


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


def test_the_residual_learner_is_greedy_and_says_so():
    choice = Residual(DIM, LIKE).choose(scene(), np.random.default_rng(0))
    assert choice.probability == 1.0
