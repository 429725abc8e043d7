"""Choosers: a guess from descriptions, a correction by ridge, true probabilities, and PPO whose ratios begin at one."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.decide.core.agent import CHOOSERS, make_chooser
from surefoot.decide.encoders.encoder import HashingEncoder, Likeness
from surefoot.decide.policy.choosers import Experience, Residual
from surefoot.decide.policy.outcome_model import OutcomeConfig, OutcomeModel, Scene
from surefoot.decide.policy.ppo import ChooserConfig, PPOChooser, spread
from surefoot.errors import AllActionsMasked

LIKE = Likeness(sharpness=10.0, slope=8.0, middle=0.3)
DIM = 6


def scene(seed: int = 0, options: int = 4, cosine: list[float] | None = None) -> Scene:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=DIM)
    near = rng.uniform(-0.2, 0.8, options) if cosine is None else np.array(cosine)
    return Scene(
        x=(x / np.linalg.norm(x)).astype(np.float32), option=np.arange(options), cosine=near.astype(np.float32)
    )


def ppo(**config) -> PPOChooser:
    return PPOChooser(DIM, LIKE, options=4, config=ChooserConfig(**config))


def live(chooser, decisions: int, right, seed: int = 0) -> list[float]:
    """Rewards of a stream in which `right(scene)` says which candidate pays."""
    rng, won = np.random.default_rng(seed), []
    for t in range(decisions):
        at = scene(seed * 100_000 + t, cosine=[0.3, 0.2, 0.6, 0.1])
        choice = chooser.choose(at, rng)
        won.append(float(choice.at == right(at)))
        chooser.learn([[Experience(scene=at, choice=choice, reward=won[-1])]])
    return won


def test_the_correction_is_the_ridge_solution_of_what_the_guess_missed():
    model = OutcomeModel(DIM, LIKE, OutcomeConfig(ridge=0.5, patience=2.0, forget=0.0))
    rng, rows = np.random.default_rng(1), []
    for t in range(30):
        at, reward = scene(t), float(rng.random() < 0.5)
        model.learn(at, 2, reward)
        rows.append((at, reward))
    x = np.stack([np.append(at.x, 0.3) for at, _ in rows])
    h = 30 / (30 + 2 * 4)
    guess = np.array([(1 - h) * model.guesses(at.cosine)[0, 2] + h * model.guesses(at.cosine)[1, 2] for at, _ in rows])
    theta = np.linalg.solve(x.T @ x + 0.5 * np.eye(DIM + 1), x.T @ (np.array([r for _, r in rows]) - guess))
    asked = scene(99)
    assert model.hope == pytest.approx(h)
    assert model.correction(asked)[2] == pytest.approx(theta @ np.append(asked.x, 0.3), abs=1e-4)
    assert model.correction(asked)[0] == 0.0, "an option without outcomes is worth its guess"


def test_an_untrained_policy_prefers_the_nearest_description():
    at = scene(cosine=[0.1, 0.7, 0.2, 0.0])
    for name in CHOOSERS:
        chooser = make_chooser(name, HashingEncoder(8))
        at8 = Scene(x=np.ones(8, np.float32) / np.sqrt(8), option=at.option, cosine=at.cosine)
        assert chooser.choose(at8, np.random.default_rng(0), greedy=True).at == 1


def test_probabilities_are_those_it_draws_by():
    chooser, at = ppo(sharpness=12.0, floor=0.05), scene(cosine=[0.5, 0.45, 0.4, -1.0])
    rng = np.random.default_rng(0)
    drawn = [chooser.choose(at, rng) for _ in range(1500)]
    counts = np.bincount([choice.at for choice in drawn], minlength=4) / 1500
    assert counts == pytest.approx(drawn[0].probabilities, abs=0.04)
    assert all(choice.probability == choice.probabilities[choice.at] for choice in drawn[:50])
    assert drawn[0].probabilities[3] == 0.0, "what is less likely than the floor is never drawn"


def test_the_floor_leaves_the_likeliest_even_if_all_are_below_it():
    probabilities, plausible = spread(np.zeros(100), 0.5)
    assert probabilities.sum() == pytest.approx(1.0)
    assert plausible.all()


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


def test_it_learns_what_descriptions_get_wrong_and_beats_them():
    def right(at: Scene) -> int:
        return int(at.x[0] > 0)  # nothing to do with the descriptions

    won = live(ppo(), 250, right)  # the nearest description is always that of option 2, which never is right
    assert np.mean(won[:20]) < 0.5
    assert np.mean(won[-100:]) > 0.75


def test_an_option_that_stops_being_right_is_let_go():
    model = OutcomeModel(DIM, LIKE, OutcomeConfig(patience=0.0))
    at = scene(cosine=[0.2, 0.2, 0.2, 0.2])
    for _ in range(100):
        model.learn(at, 0, 1.0)
    for _ in range(20):
        model.learn(at, 0, 0.0)
    assert model.forgotten >= 1
    assert model.predict(at)[0] < 0.6


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
