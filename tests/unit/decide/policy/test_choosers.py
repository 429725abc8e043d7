"""Choosers: a guess from descriptions, a correction by ridge, true probabilities."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.decide.core.chooser_registry import make_chooser
from surefoot.decide.encoders.encoder import HashingEncoder
from surefoot.decide.policy.choosers import Experience, Residual
from surefoot.decide.policy.outcome_model import Scene
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


@pytest.mark.parametrize("name", ["replay", "ppo", "residual", "egreedy"])
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


def test_the_residual_learner_is_greedy_and_says_so():
    choice = Residual(DIM, LIKE).choose(scene(), np.random.default_rng(0))
    assert choice.probability == 1.0
