"""Tests of `surefoot.decide.policy.outcome_model`."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.decide.core.chooser_registry import CHOOSERS, make_chooser
from surefoot.decide.encoders.encoder import HashingEncoder
from surefoot.decide.policy.choosers import Experience
from surefoot.decide.policy.outcome_model import OutcomeConfig, OutcomeModel, Scene

from .choosers_cases import DIM, LIKE, ppo, scene


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


def test_the_best_by_estimate_and_uncertainty_is_that_of_all_widths():
    model, rng = OutcomeModel(DIM, LIKE, OutcomeConfig(patience=0.0, forget=0.0)), np.random.default_rng(0)
    for seed in range(40):
        model.learn(scene(seed), int(rng.integers(0, 3)), float(rng.integers(0, 2)))
    for seed in range(100, 140):
        at, factor = scene(seed), rng.normal(size=4)
        worth, x = model.predict(at), np.append(at.x, 0.3)
        width = [np.sqrt(x @ model._inverse[a] @ x) if a in model._inverse else np.linalg.norm(x) for a in range(4)]
        assert model.best(at, worth, factor) == int((worth + factor * np.array(width)).argmax())
