import pytest
import torch
from gymnasium import spaces

from surefoot.compat.sb3.policies import distributions as d


@pytest.mark.parametrize(
    ("dist", "width"),
    [(d.CategoricalDistribution(3), 3), (d.MultiCategoricalDistribution([2, 3]), 5), (d.BernoulliDistribution(2), 2)],
)
def test_the_entropy_is_the_mean_of_minus_log_p(dist, width):
    torch.manual_seed(0)
    dist.proba_distribution(torch.randn(1, width).repeat(50_000, 1))
    assert float(-dist.log_prob(dist.sample()).mean()) == pytest.approx(float(dist.entropy().mean()), abs=0.02)


def test_a_squashed_action_has_the_density_of_its_inverse():
    dist = d.SquashedDiagGaussianDistribution(1).proba_distribution(torch.zeros(1, 1), torch.zeros(1))
    # p(a) = N(atanh a) / (1 - a²) at a = 0.5.
    x = torch.atanh(torch.tensor(0.5))
    expected = torch.distributions.Normal(0.0, 1.0).log_prob(x) - torch.log(torch.tensor(0.75))
    assert float(dist.log_prob(torch.tensor([[0.5]]))) == pytest.approx(float(expected), abs=1e-4)


def test_actions_with_two_axes_of_bits_are_refused():
    with pytest.raises(AssertionError, match="Multi-dimensional"):
        d.make_proba_distribution(spaces.MultiBinary([2, 2]))
