"""Whatever is asked, said or logged: rewards stay in range, records come back equal, probabilities add up."""

from __future__ import annotations

import math
from contextlib import suppress
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.compat.hololoom.spacetime import Spacetime, WeavingTrace
from surefoot.decide.encoders.encoder import HashingEncoder
from surefoot.decide.policy.calibration import Calibration
from surefoot.decide.policy.exploration import draw, log_softmax, spread
from surefoot.decide.rewards import RewardFacts, reward_of
from surefoot.decide.tools.toolbox.calc import evaluate, find_expression
from surefoot.errors import ToolError

UNIT = st.floats(0, 1)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(
    confidence=UNIT,
    duration=st.floats(0, 1e7),
    quality=st.none() | UNIT,
    errors=st.integers(0, 9),
    feedback=st.fixed_dictionaries(
        {}, optional={"rating": st.floats(0, 5), "relevance": UNIT, "helpful": st.booleans()}
    ),
)
def test_rewards_stay_between_minus_one_and_one(confidence, duration, quality, errors, feedback):
    found = reward_of(
        RewardFacts(confidence=confidence, duration_ms=duration, quality=quality, errors=errors), feedback
    )
    assert -1.0 <= found.value <= 1.0
    assert 0.0 <= found.unit <= 1.0
    assert math.isclose(found.unit, (found.value + 1) / 2)


@given(text=st.text(), data=st.dictionaries(st.text(max_size=5), JSON, max_size=3), score=st.none() | UNIT)
def test_a_spacetime_comes_back_equal(text, data, score):
    made = Spacetime(
        query_text=text,
        response=text,
        tool_used="x",
        confidence=0.5,
        metadata={f"k{key}": value for key, value in data.items()},
        quality_score=score,
        trace=WeavingTrace(warnings=[text], tool_probabilities={"a": 1 / 3}),
    )
    assert Spacetime.from_dict(made.to_dict()) == made


@given(logits=st.lists(st.floats(-300, 300), min_size=1, max_size=30), floor=st.floats(0, 0.5), seed=st.integers(0, 99))
def test_what_is_drawn_is_plausible_and_probabilities_add_up_to_one(logits, floor, seed):
    probabilities, plausible = spread(np.array(logits), floor)
    assert math.isclose(probabilities.sum(), 1.0, rel_tol=1e-9)
    assert plausible[int(np.argmax(logits))]
    at = draw(probabilities, np.random.default_rng(seed))
    assert plausible[at]
    assert probabilities[at] > 0
    assert math.isclose(np.exp(log_softmax(np.array(logits))).sum(), 1.0, rel_tol=1e-9)


@given(pairs=st.lists(st.tuples(UNIT, UNIT), max_size=40))
def test_a_calibrated_prediction_is_a_rate_and_rises_with_the_prediction(pairs):
    made = Calibration()
    for said, seen in pairs:
        made.add(said, seen)
    told = [made(x) for x in np.linspace(0, 1, 11)]
    assert all(0.0 <= value <= 1.0 for value in told)
    assert all(a <= b + 1e-12 for a, b in pairwise(told))


@settings(deadline=None)
@given(text=st.text(max_size=60))
def test_calc_answers_or_refuses_whatever_it_is_asked(text):
    with suppress(ToolError):
        evaluate(find_expression(text))


@given(text=st.text(max_size=80))
def test_any_text_has_a_vector_of_length_one_or_none(text):
    (row,) = HashingEncoder(32).encode([text])
    length = float(np.linalg.norm(row))
    assert math.isclose(length, 1.0, rel_tol=1e-5) or length == 0.0
