"""Tests of `surefoot.decide.policy.replay`: descriptions first, then outcomes; true probabilities; forgetting."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.decide.policy.choosers import Experience
from surefoot.decide.policy.outcome_model import Scene
from surefoot.decide.policy.replay import ReplayChooser, ReplayConfig
from surefoot.errors import AllActionsMasked

from .choosers_cases import DIM, LIKE, scene


def replay(**config) -> ReplayChooser:
    return ReplayChooser(DIM, LIKE, config=ReplayConfig(**config))


def groups(seed: int, count: int, options: int = 4) -> list[tuple[Scene, int]]:
    """Queries near one of `options` corners, whose right option the descriptions do not tell (equal cosines)."""
    rng = np.random.default_rng(seed)
    corners = np.eye(DIM)[:options]
    drawn = []
    for right in rng.integers(0, options, count):
        x = corners[right] + 0.2 * rng.normal(size=DIM)
        cosine = np.full(options, 0.4, np.float32)
        drawn.append(
            (Scene(x=(x / np.linalg.norm(x)).astype(np.float32), option=np.arange(options), cosine=cosine), right)
        )
    return drawn


def play(chooser: ReplayChooser, stream, rng) -> list[bool]:
    good = []
    for at, right in stream:
        choice = chooser.choose(at, rng)
        good.append(bool(at.option[choice.at] == right))
        chooser.learn([[Experience(scene=at, choice=choice, reward=float(good[-1]))]])
    return good


def test_an_untrained_policy_is_the_softmax_of_the_descriptions_with_none_of_these():
    at = scene(cosine=[0.5, 0.3, 0.1, -0.2])
    choice = replay().choose(at, np.random.default_rng(0))
    # By hand: logits 10 cos, and 10 · 0.3 for "none of these".
    raised = np.exp(10.0 * np.array([0.5, 0.3, 0.1, -0.2, 0.3]))
    assert choice.worth == pytest.approx(raised[:4] / raised.sum(), rel=1e-5)
    assert choice.prior == pytest.approx(choice.worth)
    assert not choice.learned.any()


def test_probabilities_are_those_it_draws_by():
    chooser, at, rng = replay(sharpness=5.0, floor=0.05), scene(cosine=[0.5, 0.45, 0.4, -1.0]), np.random.default_rng(0)
    drawn = [chooser.choose(at, rng) for _ in range(1500)]
    counts = np.bincount([choice.at for choice in drawn], minlength=4) / 1500
    assert counts == pytest.approx(drawn[0].probabilities, abs=0.04)
    assert all(choice.probability == choice.probabilities[choice.at] for choice in drawn[:50])


def test_the_greedy_choice_is_certain():
    choice = replay().choose(scene(), np.random.default_rng(0), greedy=True)
    assert choice.probability == 1.0
    assert choice.at == int(choice.worth.argmax())


def test_no_candidate_at_all_is_an_error():
    with pytest.raises(AllActionsMasked, match="no candidate"):
        replay().choose(scene(options=0), np.random.default_rng(0))


def test_it_learns_from_rewards_what_descriptions_do_not_tell():
    good = play(replay(), groups(0, 600), np.random.default_rng(0))
    assert np.mean(good[:20]) < 0.7
    assert np.mean(good[-200:]) > 0.93


def test_a_success_takes_probability_from_the_others_and_a_failure_gives_it_to_them():
    at = scene(3)
    for reward in (0.0, 1.0):
        chooser = replay(minibatch_size=1, decay=1e-9)
        choice = chooser.choose(at, np.random.default_rng(1))
        chooser.learn([[Experience(scene=at, choice=choice, reward=reward)]])
        after = chooser.choose(at, np.random.default_rng(1), greedy=True)
        gains = after.worth - choice.worth
        assert (gains[choice.at] > 0) == (reward == 1.0)
        others = np.arange(4) != choice.at
        assert ((gains[others] > 0) == (reward == 0.0)).all(), "a failure gives its probability to the others"


def test_rewards_of_which_a_tenth_is_wrong_hardly_matter():
    chooser, rng, noise = replay(), np.random.default_rng(0), np.random.default_rng(1)
    good = []
    for at, right in groups(5, 800):
        choice = chooser.choose(at, rng)
        good.append(bool(choice.at == right))
        reward = float(good[-1] != (noise.random() < 0.1))
        chooser.learn([[Experience(scene=at, choice=choice, reward=reward)]])
    assert np.mean(good[-200:]) > 0.9


def test_options_that_swap_their_meaning_are_learned_anew():
    first, second = groups(2, 500), [(at, (right + 1) % 4) for at, right in groups(3, 700)]
    chooser = replay()
    play(chooser, first, np.random.default_rng(0))
    assert chooser.forgotten == 0, "nothing has changed yet"
    good = play(chooser, second, np.random.default_rng(1))
    assert chooser.forgotten > 0
    assert np.mean(good[-200:]) > 0.85
    stubborn = replay(forget=0.0)
    play(stubborn, first, np.random.default_rng(0))
    assert np.mean(play(stubborn, second, np.random.default_rng(1))[-200:]) < np.mean(good[-200:])


def test_an_option_that_comes_later_starts_from_its_description_and_costs_the_others_nothing():
    chooser = replay()
    play(chooser, groups(0, 300), np.random.default_rng(0))
    at, _ = groups(9, 1)[0]
    before = chooser.choose(at, np.random.default_rng(0), greedy=True)
    # Far from the query: the new option has no part of the probability, and the others keep theirs.
    wider = Scene(x=at.x, option=np.arange(5), cosine=np.append(at.cosine, np.float32(-1.0)))
    after = chooser.choose(wider, np.random.default_rng(0), greedy=True)
    assert after.worth[:4] == pytest.approx(before.worth, abs=1e-5)
    near = Scene(x=at.x, option=np.arange(5), cosine=np.append(at.cosine, np.float32(3.0)))
    assert chooser.choose(near, np.random.default_rng(0), greedy=True).at == 4


def test_candidates_that_differ_from_decision_to_decision_share_what_was_learned():
    rng, chooser, good = np.random.default_rng(0), replay(), []
    for at, right in groups(4, 900):
        others = rng.permutation([k for k in range(4) if k != right])[: rng.integers(1, 4)]
        option = rng.permutation(np.append(others, right))
        part = Scene(x=at.x, option=option, cosine=at.cosine[option])
        choice = chooser.choose(part, rng)
        good.append(bool(option[choice.at] == right))
        chooser.learn([[Experience(scene=part, choice=choice, reward=float(good[-1]))]])
    assert np.mean(good[-200:]) > 0.93


def test_many_options_of_which_few_are_candidates_learn_the_same():
    """The branch that gathers only the rows of a minibatch gives the same policy as the one with all rows."""
    few, many = replay(), replay()
    many._grow(500)
    rng = np.random.default_rng(0)
    for at, right in groups(6, 200):
        choice = few.choose(at, rng)
        each = [[Experience(scene=at, choice=choice, reward=float(choice.at == right))]]
        few.learn(each)
        # As many steps as the small table: the wide one would take them less often.
        many._pending += 10
        many.learn(each)
        many._pending = 0
    at, _ = groups(7, 1)[0]
    expected = few.choose(at, rng, greedy=True).worth
    assert many.choose(at, rng, greedy=True).worth == pytest.approx(expected, abs=0.1)


def test_logged_decisions_are_scored_as_they_were_chosen():
    chooser, rng = replay(sharpness=10.0), np.random.default_rng(0)
    play(chooser, groups(0, 100), rng)
    last = chooser.log.latest(5)
    for row, option, cosine, x in zip(chooser.probabilities(last), last.option, last.cosine, last.x, strict=True):
        now = chooser.choose(Scene(x=x, option=option, cosine=cosine), np.random.default_rng(0))
        assert row == pytest.approx(now.probabilities, abs=1e-6)
    untrained = replay(sharpness=10.0)
    assert chooser.prior(last) == pytest.approx(untrained.probabilities(last))


def test_a_saved_policy_continues_to_the_last_digit():
    one, rng = replay(), np.random.default_rng(0)
    play(one, groups(0, 150), rng)
    two, other = replay(), np.random.default_rng(0)
    two.set_state(one.state())
    other.bit_generator.state = rng.bit_generator.state
    assert play(one, groups(1, 100), rng) == play(two, groups(1, 100), other)
    assert (one._now.table == two._now.table).all()
    assert one.version == two.version


def test_a_step_of_a_chain_is_worth_what_the_chain_achieves():
    chooser, rng, at = replay(), np.random.default_rng(0), scene()
    steps = [Experience(scene=at, choice=chooser.choose(at, rng), reward=r) for r in (0.0, 1.0)]
    chooser.learn([steps])
    assert sorted(chooser.log.latest(2).reward.tolist()) == [0.5, 1.0]


def test_the_log_is_bounded_and_what_fell_out_is_not_replayed():
    chooser = replay(log=50)
    play(chooser, groups(0, 180), np.random.default_rng(0))
    assert len(chooser.log) == 50
    assert chooser.outcomes == 180


def test_an_option_under_a_new_name_keeps_what_was_learned_about_its_description():
    described = np.eye(DIM, dtype=np.float32)[[0, 1, 2, 3, 3]]
    chooser = replay()
    stream = [
        (Scene(x=at.x, option=at.option, cosine=at.cosine, described=described[:4]), r) for at, r in groups(0, 600)
    ]
    play(chooser, stream, np.random.default_rng(0))
    renamed = [
        (Scene(x=at.x, option=np.array([0, 1, 2, 4]), cosine=at.cosine, described=described), 4 if r == 3 else r)
        for at, r in groups(1, 61)
    ]
    good = play(chooser, renamed, np.random.default_rng(0))
    assert np.mean(good[1:]) > 0.93
    both = Scene(x=stream[0][0].x, option=np.arange(5), cosine=np.full(5, 0.4, np.float32), described=described)
    fresh = replay()
    play(fresh, stream, np.random.default_rng(0))
    before = fresh._now.table[3].copy()
    fresh.learn([[Experience(scene=both, choice=fresh.choose(both, np.random.default_rng(0)), reward=1.0)]])
    assert not np.allclose(fresh._now.table[4], before, atol=0.3), (
        "beside the old one, a new option starts from nothing"
    )


def test_confidence_is_lower_for_queries_that_fit_no_candidate():
    chooser, rng = replay(), np.random.default_rng(0)
    play(chooser, groups(0, 800), rng)
    known = [chooser.choose(at, rng, greedy=True).confidence for at, _ in groups(1, 50)]
    strange = Scene(x=np.eye(DIM, dtype=np.float32)[5], option=np.arange(4), cosine=np.full(4, 0.2, np.float32))
    assert chooser.choose(strange, rng, greedy=True).confidence < np.quantile(known, 0.1)
