import numpy as np
import pytest

from surefoot.compat.sb3.noise import NormalActionNoise, OrnsteinUhlenbeckActionNoise, VectorizedActionNoise


def test_normal_noise_has_its_mean_and_deviation():
    np.random.seed(0)
    noise = NormalActionNoise(np.array([1.0]), np.array([0.5]))
    values = np.array([noise() for _ in range(4000)])
    # Standard errors: 0.5 / √4000 = 0.008 and 0.006.
    assert values.mean() == pytest.approx(1.0, abs=0.04)
    assert values.std() == pytest.approx(0.5, abs=0.03)


def test_without_deviation_the_process_goes_to_its_mean():
    noise = OrnsteinUhlenbeckActionNoise(np.ones(1), np.zeros(1), theta=0.5, dt=1.0)
    assert [noise().item() for _ in range(3)] == [0.5, 0.75, 0.875]
    noise.reset()
    assert noise().item() == 0.5


def test_each_env_has_its_own_noise():
    base = OrnsteinUhlenbeckActionNoise(np.zeros(2), np.ones(2))
    noise = VectorizedActionNoise(base, 3)
    assert noise().shape == (3, 2)
    noise.reset([1])
    assert not noise.noises[1].noise_prev.any()
    assert noise.noises[0].noise_prev.any()
    for wrong in (0, "x", None):
        with pytest.raises(ValueError, match="n_envs"):
            VectorizedActionNoise(base, wrong)
