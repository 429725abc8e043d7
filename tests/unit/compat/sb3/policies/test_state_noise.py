import torch

from surefoot.compat.sb3.policies.state_noise import StateDependentNoiseDistribution, TanhBijector


def test_the_same_matrix_gives_the_same_noise_until_it_is_drawn_again():
    dist = StateDependentNoiseDistribution(2)
    _, log_std = dist.proba_distribution_net(3)
    state = torch.ones(1, 3)
    dist.proba_distribution(torch.zeros(1, 2), log_std, state)
    first = dist.sample()
    assert torch.equal(first, dist.sample())
    dist.sample_weights(log_std)
    assert not torch.equal(first, dist.sample())


def test_expln_is_continuous_at_zero_and_grows_slowly():
    dist = StateDependentNoiseDistribution(1, use_expln=True)
    below, above, far = dist.get_std(torch.tensor([[-1e-6], [1e-6], [5.0]])).flatten().tolist()
    assert abs(below - above) < 1e-4
    assert far < 3.0


def test_the_inverse_of_tanh_is_finite_at_one():
    assert torch.isfinite(TanhBijector.inverse(torch.tensor([1.0, -1.0]))).all()
