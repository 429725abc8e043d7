"""Named options with stable indices."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.decide.policy.options import Options, successors
from surefoot.errors import ConfigError, UnknownOption


def test_an_option_that_comes_back_has_its_index_again(encoder):
    options = Options(encoder, ("reserved",))
    assert (options.add("a", "one thing"), options.add("b", "another")) == (1, 2)
    options.remove("a")
    assert options.names == ["b"]
    assert options.add("a", "one thing") == 1
    assert (options.name(0), options.highest) == ("reserved", 3)


def test_the_own_description_has_the_largest_cosine(encoder):
    options = Options(encoder)
    options.add("weather", "rain and sun")
    options.add("music", "songs and albums")
    scene = options.scene(encoder.encode(["weather: rain and sun"])[0], ["music", "weather"])
    assert scene.option.tolist() == [1, 0]
    assert scene.cosine[1] == pytest.approx(1.0, abs=1e-5)
    assert scene.cosine[0] < 0.9


def test_unknown_names_and_empty_descriptions_are_refused(encoder):
    options = Options(encoder)
    with pytest.raises(ConfigError, match="neither may be empty"):
        options.add("a", " ")
    with pytest.raises(UnknownOption, match="none yet"):
        options.allowed(["a"])


def test_successors_are_new_options_with_the_description_of_an_old_one():
    described = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.8, 0.6]], np.float32)
    new, old = successors(described, np.array([2, 3]), np.array([0, 1, 9]))
    assert new.tolist() == [2]
    assert old.tolist() == [0]
    assert len(successors(described, np.array([2]), np.array([], int))[0]) == 0
