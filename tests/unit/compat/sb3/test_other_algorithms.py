import inspect

import pytest

import surefoot.sb3
from surefoot.compat.sb3 import other_algorithms


@pytest.mark.parametrize("use", ["call", "load"])
def test_other_algorithms_can_be_imported_and_say_that_they_are_absent(use):
    with pytest.raises(NotImplementedError, match="has PPO, not SAC"):
        surefoot.sb3.SAC("MlpPolicy", "Pendulum-v1") if use == "call" else surefoot.sb3.SAC.load("model")


def test_each_is_a_class_of_its_name():
    kinds = {name: kind for name, kind in vars(other_algorithms).items() if isinstance(kind, other_algorithms._Absent)}
    assert len(kinds) == 12
    assert all(inspect.isclass(kind) and kind.__name__ == name for name, kind in kinds.items())
    assert {kind.__module__ for kind in kinds.values()} == {other_algorithms.__name__}
