"""Names of SB3: what works, and what is refused with its replacement."""

import numpy as np
import pytest

from surefoot.errors import ConfigError
from surefoot.train.interop.sb3_names import VecNormalize, as_callbacks, refuse_attribute, stops_training


@pytest.mark.parametrize(
    ("answer", "stops"), [(False, True), (np.False_, True), (None, False), (0, False), (True, False)]
)
def test_only_false_stops(answer: object, stops: bool) -> None:
    assert stops_training(answer) is stops


def test_callbacks_are_none_one_or_several() -> None:
    assert as_callbacks(None) == []
    assert as_callbacks(print) == [print]
    assert as_callbacks([print, repr]) == [print, repr]
    with pytest.raises(ConfigError, match="UpdateReport"):
        as_callbacks("not callable")


def test_the_statistics_of_vec_normalize_have_no_file() -> None:
    wrapped = VecNormalize.__new__(VecNormalize)
    with pytest.raises(ConfigError, match=r"model\.save"):
        wrapped.save("stats.pkl")
    with pytest.raises(ConfigError, match=r"PPO\.load"):
        VecNormalize.load("stats.pkl")


def test_an_attribute_of_sb3_is_refused_with_its_replacement() -> None:
    with pytest.raises(AttributeError, match=r"'n_steps'; surefoot\.sb3\.PPO"):
        refuse_attribute("n_steps")
