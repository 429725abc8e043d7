import numpy as np
import pytest
from tests.unit.compat.sb3.small_env import CountingEnv

from surefoot.compat.sb3.vec_env import DummyVecEnv, SubprocVecEnv


def test_processes_return_what_one_process_returns():
    many, one = SubprocVecEnv([CountingEnv] * 2, start_method="fork"), DummyVecEnv([CountingEnv] * 2)
    assert np.array_equal(many.reset(), one.reset())
    for _ in range(5):
        first, second = many.step([0, 1]), one.step([0, 1])
        assert np.array_equal(first[0], second[0])
        assert np.array_equal(first[2], second[2])
    assert many.env_method("double", 3) == [6, 6]
    assert many.get_attr("length") == [4, 4]
    # An error of an env is raised here, and the pipe is still in order.
    with pytest.raises(AttributeError):
        many.get_attr("nothing")
    # An answer that nobody waited for is dropped.
    many.step_async([0, 0])
    assert many.get_attr("length") == [4, 4]
    many.close()


def test_processes_are_told_to_end_at_the_exit_of_a_program_that_does_not_close_them():
    env = SubprocVecEnv([CountingEnv], start_method="fork")
    assert env._forgotten.alive
    assert env._forgotten.atexit
    env._forgotten()
    env.processes[0].join(timeout=20)
    assert env.processes[0].exitcode == 0
    env.close()
