"""Spaces: bounds by hand, and a round trip through real JSON."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from surefoot.data.spaces import Box, Discrete, MultiDiscrete, space_from_json, space_to_json
from surefoot.errors import SpaceError


@pytest.mark.parametrize(
    "space",
    [
        Box((3,)),
        Box((2, 2), -1.0, 1.0),
        Box((2,), (-math.inf, 0.0), (1.0, math.inf)),
        Box((), 0, 255, "uint8"),
        Discrete(4),
        Discrete(4, start=-2),
        MultiDiscrete((2, 3)),
    ],
)
def test_a_space_comes_back_from_json_equal(space):
    text = json.dumps(space_to_json(space), allow_nan=False)
    assert space_from_json(json.loads(text)) == space


def test_bounds_are_spread_over_the_shape():
    low, high = Box((2, 2), (0.0, 1.0, 2.0, 3.0), 9.0).bounds()
    assert low.tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert high.tolist() == [[9.0, 9.0], [9.0, 9.0]]
    assert low.dtype == np.float32


@pytest.mark.parametrize(
    ("box", "bounded"),
    [(Box((2,), -1.0, 1.0), True), (Box((2,)), False), (Box((2,), (0.0, 0.0), (1.0, math.inf)), False)],
)
def test_a_box_is_bounded_only_if_every_component_is(box, bounded):
    assert box.bounded is bounded


@pytest.mark.parametrize(("shape", "size"), [((), 1), ((3,), 3), ((2, 5), 10), ((0,), 0)])
def test_the_size_is_the_product_of_the_shape(shape, size):
    assert Box(shape).size == size


def test_an_unknown_kind_is_refused_with_those_that_are_known():
    with pytest.raises(SpaceError, match="'text'.*box, discrete, multi_discrete and hybrid"):
        space_from_json({"kind": "text"})
