"""Continuous distributions against torch.distributions, numeric integrals and sample moments."""

from __future__ import annotations

import math

import pytest
import torch
from torch import distributions as td

from surefoot.nets.continuous_distributions import Beta, Gaussian, Joint, TanhGaussian, log_tanh_slope, side_by_side
from surefoot.nets.distributions import Categorical, MultiCategorical


def noise(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_a_gaussian_says_what_torchs_says():
    mean, log_std, action = noise(30, 3), noise(3, seed=1), noise(30, 3, seed=2) * 2
    ours, theirs = Gaussian(mean, log_std), td.Independent(td.Normal(mean, log_std.exp()), 1)
    assert torch.allclose(ours.log_prob(action), theirs.log_prob(action), rtol=1e-5, atol=1e-5)
    assert torch.allclose(ours.entropy(), theirs.entropy(), atol=1e-5)
    assert torch.equal(ours.mode(), mean)


def test_gaussian_draws_have_the_mean_and_the_spread_they_should():
    mean, std = torch.tensor([1.0, -2.0]), torch.tensor([0.5, 3.0])
    drawn = Gaussian(mean.expand(100_000, 2), std.log()).sample(seeded())
    assert torch.allclose(drawn.mean(0), mean, atol=5 * 3.0 / math.sqrt(100_000))
    assert torch.allclose(drawn.std(0), std, rtol=0.02)
    assert abs(torch.corrcoef(drawn.T)[0, 1]) < 0.02


@pytest.mark.parametrize(("asked", "got"), [(100.0, 2.0), (-100.0, -20.0), (math.inf, 2.0), (-math.inf, -20.0)])
def test_an_absurd_log_std_is_held_and_its_gradient_is_finite(asked, got):
    mean, log_std = torch.zeros(4, 2, requires_grad=True), torch.full((2,), asked, requires_grad=True)
    dist = Gaussian(mean, log_std)
    action = torch.full((4, 2), 0.3)
    expected = td.Independent(td.Normal(torch.zeros(4, 2).double(), math.exp(got)), 1)
    assert torch.allclose(dist.log_prob(action).double(), expected.log_prob(action.double()), rtol=1e-5)
    (dist.log_prob(action) + dist.entropy()).sum().backward()
    assert torch.isfinite(mean.grad).all()
    assert torch.isfinite(log_std.grad).all()


@pytest.mark.parametrize("scale", [1.0, 2.5])
def test_a_squashed_gaussian_says_what_a_transformed_one_says(scale):
    mean, log_std, u = noise(40, 2), torch.tensor([-0.5, 0.3]), noise(40, 2, seed=3) * 1.5
    ours = TanhGaussian(mean, log_std, torch.full((2,), scale).log())
    squash = [td.TanhTransform(cache_size=1), td.AffineTransform(0.0, scale)]
    theirs = td.Independent(td.TransformedDistribution(td.Normal(mean.double(), log_std.double().exp()), squash), 1)
    action = scale * torch.tanh(u.double())
    assert torch.allclose(ours.log_prob(u).double(), theirs.log_prob(action), atol=1e-4)


def test_a_squashed_density_integrates_to_one():
    # Over the squashed action a in (-2, 2), as the world sees it.
    a = torch.linspace(-2 + 1e-6, 2 - 1e-6, 200_001, dtype=torch.float64)
    u = torch.atanh(a / 2).float().unsqueeze(-1)
    dist = TanhGaussian(torch.full_like(u, 0.4), torch.tensor([-0.7]), torch.tensor([2.0]).log())
    assert torch.trapezoid(dist.log_prob(u).double().exp(), a).item() == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("u", [-20.0, 20.0, -50.0, 50.0])
def test_a_saturated_tanh_keeps_log_prob_and_gradient_finite(u):
    action = torch.full((1, 1), u)
    mean, log_std = torch.zeros(1, 1, requires_grad=True), torch.zeros(1, requires_grad=True)
    dist = TanhGaussian(mean, log_std, torch.zeros(1))
    (dist.log_prob(action) + dist.entropy()).sum().backward()
    assert torch.isfinite(mean.grad).all()
    assert torch.isfinite(log_std.grad).all()
    # 1 - tanh² u → 4 e^(-2|u|)
    assert log_tanh_slope(action).item() == pytest.approx(math.log(4.0) - 2 * abs(u), rel=1e-5)


@pytest.mark.parametrize("mean", [0.0, 0.7, -2.0])
@pytest.mark.parametrize("log_std", [-3.0, -1.0, 0.0])
def test_the_entropy_of_a_squashed_gaussian_is_the_integral(mean, log_std):
    # H = -∫ p(u) log(p(u) / slope(u)) du on a fine grid; slope by its definition, in float64.
    std = math.exp(log_std)
    u = torch.linspace(mean - 9 * std, mean + 9 * std, 40_001, dtype=torch.float64)
    log_p = td.Normal(torch.tensor(mean).double(), std).log_prob(u)
    expected = -torch.trapezoid(log_p.exp() * (log_p - torch.log1p(-torch.tanh(u).square())), u)
    ours = TanhGaussian(torch.tensor([[mean]]), torch.tensor([log_std]), torch.zeros(1)).entropy()
    assert ours.item() == pytest.approx(expected.item(), abs=3e-3)


def test_the_entropy_of_a_squashed_gaussian_is_its_mean_surprise():
    dist = TanhGaussian(torch.full((200_000, 1), 0.5), torch.tensor([-0.5]), torch.tensor([3.0]).log())
    surprise = -dist.log_prob(dist.sample(seeded()))
    assert dist.entropy()[0].item() == pytest.approx(surprise.mean().item(), abs=5 * surprise.std().item() / 447)


def test_a_squashed_mode_is_the_mean_before_the_tanh():
    assert torch.equal(
        TanhGaussian(torch.tensor([[0.3]]), torch.zeros(1), torch.zeros(1)).mode(), torch.tensor([[0.3]])
    )


def stretched(alpha: torch.Tensor, beta: torch.Tensor, low: float, high: float) -> td.Distribution:
    """torch's own Beta between two bounds."""
    move = td.AffineTransform(torch.tensor(low).double(), torch.tensor(high - low).double())
    return td.TransformedDistribution(td.Beta(alpha.double(), beta.double()), [move])


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-1.0, 1.0), (3.0, 3.25)])
def test_a_beta_says_what_torchs_says_stretched_to_its_bounds(low, high):
    alpha, beta = 1.0 + noise(30, 3).exp(), 1.0 + noise(30, 3, seed=1).exp()
    ours = Beta(alpha, beta, torch.full((3,), math.log(high - low)))
    unit = noise(30, 3, seed=2).sigmoid()
    expected = stretched(alpha, beta, low, high).log_prob(low + (high - low) * unit.double()).sum(-1)
    assert torch.allclose(ours.log_prob(unit), expected.float(), atol=1e-4)
    width = 3 * math.log(high - low)
    assert torch.allclose(ours.entropy(), td.Beta(alpha, beta).entropy().sum(-1) + width, atol=1e-4)


def test_a_sharp_beta_is_as_exact_as_a_flat_one():
    # α + β = 1700: the log-gammas are in the thousands, their difference is 3.
    alpha, beta = torch.full((100, 1), 1000.0), torch.full((100, 1), 700.0)
    ours = Beta(alpha, beta, torch.zeros(1))
    x = ours.sample(seeded())
    theirs = td.Beta(alpha.double(), beta.double())
    assert torch.allclose(ours.log_prob(x).double(), theirs.log_prob(x.double()).sum(-1), atol=1e-6)
    assert torch.allclose(ours.entropy().double(), theirs.entropy().sum(-1), atol=1e-6)
    nudged = Beta(torch.nextafter(alpha, 2 * alpha), beta, torch.zeros(1))  # as another order of summation would
    assert (nudged.log_prob(x) - ours.log_prob(x)).exp().sub(1).abs().max() < 1e-5


def test_a_beta_density_integrates_to_one_over_its_bounds():
    x = torch.linspace(1e-6, 1 - 1e-6, 20_001).unsqueeze(-1)
    dist = Beta(torch.full_like(x, 1.5), torch.full_like(x, 4.0), torch.tensor([math.log(5.0)]))
    assert torch.trapezoid(dist.log_prob(x).exp(), 5.0 * x[:, 0]).item() == pytest.approx(1.0, abs=1e-3)


def test_beta_draws_have_the_mean_and_the_spread_they_should_and_come_from_the_generator():
    alpha, beta = torch.tensor([[1.2, 8.0, 30.0]]), torch.tensor([[3.0, 2.0, 30.0]])
    dist = Beta(alpha.expand(100_000, 3), beta.expand(100_000, 3), torch.zeros(3))
    before = torch.get_rng_state()
    drawn = dist.sample(seeded())
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(drawn, dist.sample(seeded()))
    assert not torch.equal(drawn, dist.sample(seeded(1)))
    theirs = td.Beta(alpha, beta)
    assert torch.allclose(drawn.mean(0), theirs.mean[0], atol=4 * 0.25 / 100_000**0.5)
    assert torch.allclose(drawn.var(0), theirs.variance[0], rtol=0.03)


def test_the_mode_of_a_beta_is_where_its_density_is_highest():
    alpha, beta = torch.tensor([[1.5, 6.0]]), torch.tensor([[2.5, 2.0]])
    x = torch.linspace(0.001, 0.999, 999)
    for k in range(2):
        dist = Beta(alpha[:, k : k + 1].expand(999, 1), beta[:, k : k + 1].expand(999, 1), torch.zeros(1))
        best = x[dist.log_prob(x.unsqueeze(-1)).argmax()]
        assert dist.mode()[0, 0].item() == pytest.approx(best.item(), abs=0.001)


@pytest.mark.parametrize(("alpha", "beta"), [(1.0001, 1.0001), (1.0001, 5e3), (5e3, 1.0001), (5e3, 5e3)])
def test_a_beta_stays_finite_at_the_edges_of_its_support_and_of_its_parameters(alpha, beta):
    a = torch.full((10_000, 1), alpha, requires_grad=True)
    b = torch.full((10_000, 1), beta, requires_grad=True)
    dist = Beta(a, b, torch.zeros(1))
    drawn = dist.sample(seeded()).detach()
    assert ((drawn > 0) & (drawn < 1)).all()
    for action in (drawn, dist.mode().detach()):
        assert ((action > 0) & (action < 1)).all()
        said = dist.log_prob(action) + dist.entropy()
        assert torch.isfinite(said).all()
        for grad in torch.autograd.grad(said.sum(), (a, b)):
            assert torch.isfinite(grad).all()


def numbers(n: int) -> dict[str, Gaussian | Beta]:
    mean, spread = noise(n, 2, seed=3), noise(n, 2, seed=4)
    return {
        "gaussian": Gaussian(mean, torch.tensor([-0.5, 0.2])),
        "tanh": TanhGaussian(mean, torch.tensor([-0.5, 0.2]), torch.zeros(2)),
        "beta": Beta(1.0 + mean.exp(), 1.0 + spread.exp(), torch.zeros(2)),
    }


@pytest.mark.parametrize("kind", numbers(1))
def test_choices_and_numbers_at_once_add_up(kind):
    logits, inner = noise(50, 5), numbers(50)[kind]
    joint = Joint(MultiCategorical(logits, (2, 3)), inner)
    parts = [td.Categorical(logits=part) for part in logits.split([2, 3], dim=-1)]
    drawn = joint.sample(seeded())
    assert drawn.shape == (50, 4)
    chosen = sum(part.log_prob(drawn[:, k]) for k, part in enumerate(parts))
    assert torch.allclose(joint.log_prob(drawn), chosen + inner.log_prob(drawn[:, 2:]), atol=1e-5)
    assert torch.allclose(joint.entropy(), sum(part.entropy() for part in parts) + inner.entropy(), atol=1e-5)
    best = torch.stack([part.mode for part in parts], dim=-1)
    assert torch.equal(joint.mode(), torch.cat([best.float(), inner.mode()], dim=-1))
    assert set(joint.params()) == {"probs_0", "probs_1", *inner.params()}


def test_choices_kept_as_floats_come_back_as_they_were():
    # The largest index that matters here and the last one a float32 can tell from its neighbour.
    indices = torch.tensor([[0, 1, 70_001, 2**24 - 1]])
    row = side_by_side(indices, torch.tensor([[0.5]]))
    assert row.dtype == torch.float32
    assert torch.equal(row[:, :4].long(), indices)
    wide = Joint(MultiCategorical(torch.zeros(1, 70_002), (70_002,)), Gaussian(torch.zeros(1, 1), torch.zeros(1)))
    kept = side_by_side(torch.tensor([[70_001]]), torch.zeros(1, 1))
    expected = -math.log(70_002) - 0.5 * math.log(2 * math.pi)
    assert wide.log_prob(kept).item() == pytest.approx(expected, abs=1e-4)


def test_choices_of_streams_over_time_have_the_log_probs_of_their_own_rows():
    logits = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(0))
    action = torch.arange(12).reshape(3, 4) % 5
    ours = Categorical(logits).log_prob(action)
    assert ours.shape == (3, 4)
    torch.testing.assert_close(ours, td.Categorical(logits=logits).log_prob(action))
