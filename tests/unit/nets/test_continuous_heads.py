"""Continuous and hybrid heads: bounds, densities, gSDE against sample moments."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import distributions as td

from surefoot.data.spaces import Box, Discrete, Hybrid, MultiDiscrete
from surefoot.errors import ConfigError, SpaceError
from surefoot.nets.config import NetConfig
from surefoot.nets.continuous_heads import BetaHead, GaussianHead, HybridHead, StateDependentHead, TanhHead, make_head

UNIT = Box((2,), -1.0, 1.0)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_a_gaussian_action_is_clipped_for_the_world_and_takes_its_shape():
    head = make_head(Box((2, 2), (-1.0, -2.0, -3.0, -4.0), (1.0, 2.0, 3.0, 4.0)), 4, NetConfig())
    sent = head.env_action(np.array([[9.0, -9.0, 0.5, 9.0]], np.float32))
    assert sent.tolist() == [[[1.0, -2.0], [0.5, 4.0]]]


def test_the_log_std_starts_where_it_is_told_and_is_the_same_in_every_state():
    head = make_head(UNIT, 4, NetConfig(log_std_init=-0.5))
    assert isinstance(head, GaussianHead)
    assert head.log_std.shape == (2,)
    dist = head.distribution(torch.randn(3, 2), torch.zeros(3, 4), None)
    assert torch.allclose(dist.params()["std"], torch.full((3, 2), math.exp(-0.5)))
    assert head.action_std() == pytest.approx(math.exp(-0.5))


def test_the_default_log_std_is_zero():
    assert torch.equal(make_head(UNIT, 4, NetConfig()).log_std.detach(), torch.zeros(2))


def test_tanh_reaches_from_bound_to_bound_with_zero_in_the_middle():
    head = make_head(Box((2,), (-1.0, 2.0), (3.0, 6.0)), 4, NetConfig(squash=True))
    assert np.allclose(head.env_action(np.zeros((1, 2), np.float32)), [[1.0, 4.0]])
    assert np.allclose(head.env_action(np.full((1, 2), -50.0, np.float32)), [[-1.0, 2.0]])
    assert np.allclose(head.env_action(np.full((1, 2), 50.0, np.float32)), [[3.0, 6.0]])


def test_a_tanh_heads_density_counts_the_width_of_the_bounds():
    # Uniform intuition: twice as wide, half as dense, so log 2 less per component.
    u = torch.tensor([[0.3, -0.8]])
    narrow = TanhHead(UNIT, log_std_init=0.0).distribution(u, u, None)
    wide = TanhHead(Box((2,), -2.0, 2.0), log_std_init=0.0).distribution(u, u, None)
    assert (narrow.log_prob(u) - wide.log_prob(u)).item() == pytest.approx(2 * math.log(2.0), abs=1e-5)


def test_a_saturated_tanh_never_leaves_the_bounds_by_rounding():
    rng = np.random.default_rng(0)
    low = rng.uniform(-2.0, 1.0, 500)
    box = Box((500,), tuple(low), tuple(low + rng.uniform(0.1, 3.0, 500)))
    head = TanhHead(box, log_std_init=0.0)
    least, most = box.bounds()
    for u in (-50.0, 50.0):
        sent = head.env_action(np.full((1, 500), u, np.float32))[0]
        assert sent.dtype == np.float32
        assert (least <= sent).all()
        assert (sent <= most).all()


def test_squashing_needs_bounds():
    with pytest.raises(SpaceError, match="finite bounds"):
        make_head(Box((2,), -1.0, math.inf), 4, NetConfig(squash=True))


@pytest.mark.parametrize(
    ("low", "high"), [((-1.0, 0.0), (1.0, 0.0)), (-3.4e38, 3.4e38)], ids=["no width", "no real bound"]
)
def test_squashing_into_bounds_without_a_usable_width_is_refused(low, high):
    # log of the width would be infinite, and with it every log-prob.
    with pytest.raises(SpaceError, match="bounds"):
        make_head(Box((2,), low, high), 4, NetConfig(squash=True))


@pytest.mark.parametrize("knob", ["squash", "gsde"])
@pytest.mark.parametrize("space", [Discrete(3), MultiDiscrete((2, 2))])
def test_continuous_knobs_are_refused_for_discrete_actions(knob, space):
    with pytest.raises(ConfigError, match=knob):
        make_head(space, 4, NetConfig(**{knob: True}))


def test_squash_and_gsde_together_are_refused():
    with pytest.raises(ConfigError, match="choose one"):
        make_head(UNIT, 4, NetConfig(squash=True, gsde=True))


def gsde(features: int, log_std: float = 0.0) -> StateDependentHead:
    head = make_head(UNIT, features, NetConfig(gsde=True, log_std_init=log_std))
    assert isinstance(head, StateDependentHead)
    return head


def test_over_all_matrices_a_gsde_action_has_the_mean_and_variance_its_density_claims():
    head = gsde(6, -0.7)
    torch.nn.init.normal_(head.log_std, -0.7, 0.5, generator=seeded())
    features, raw = torch.randn(1, 6, generator=seeded(1)).tanh(), torch.tensor([[0.4, -0.2]])
    matrices = head.draw(200_000, seeded(2))
    dist = head.distribution(raw.expand(200_000, 2), features.expand(200_000, 6), None)
    actions = head.explore(dist, features.expand(200_000, 6), matrices, seeded())
    claimed = head.distribution(raw, features, None).params()
    assert torch.allclose(actions.mean(0), raw[0], atol=0.01)
    assert torch.allclose(actions.std(0), claimed["std"][0], rtol=0.01)
    by_hand = (features[0].square() @ head.log_std.detach().exp().square()).sqrt()
    assert torch.allclose(claimed["std"][0], by_hand, rtol=1e-4)


def test_a_wide_gsde_policy_claims_the_spread_it_really_has():
    # 256 features near ±1 with std 1 add up to a deviation of 16, more than e².
    head, features, raw = gsde(256), torch.ones(1, 256), torch.zeros(1, 2)
    action = torch.tensor([[10.0, -20.0]])
    expected = td.Independent(td.Normal(raw, 16.0), 1).log_prob(action)
    assert head.distribution(raw, features, None).log_prob(action).item() == pytest.approx(expected.item(), abs=1e-3)


def test_gsde_does_not_pull_on_the_features_to_change_the_noise():
    head, features = gsde(3), torch.ones(4, 3, requires_grad=True)
    head.distribution(torch.zeros(4, 2), features, None).entropy().sum().backward()
    assert features.grad is None
    assert (head.log_std.grad != 0).all()


def test_gsde_actions_are_clipped_for_the_world():
    assert gsde(3).env_action(np.array([[3.0, -3.0]], np.float32)).tolist() == [[1.0, -1.0]]


def test_a_beta_heads_action_reaches_from_bound_to_bound():
    head = make_head(Box((2, 2), (-1.0, 2.0, 0.0, -4.0), (3.0, 6.0, 1.0, -3.0)), 4, NetConfig(beta=True))
    assert head.outputs == 8
    assert np.allclose(head.env_action(np.full((1, 4), 0.5, np.float32)), [[[1.0, 4.0], [0.5, -3.5]]])
    assert np.allclose(head.env_action(np.full((1, 4), 1e-6, np.float32)), [[[-1.0, 2.0], [0.0, -4.0]]], atol=1e-5)
    assert head.env_action(np.full((3, 4), 0.5, np.float32)).dtype == np.float32


def test_a_beta_heads_density_is_that_of_the_action_the_world_gets():
    box = Box((2,), (-1.0, 2.0), (3.0, 6.5))
    head = BetaHead(box)
    dist = head.distribution(torch.randn(200, 4, generator=seeded()), torch.zeros(200, 1), None)
    drawn = dist.sample(seeded())
    low, high = (torch.tensor(x, dtype=torch.float64) for x in box.bounds())
    move = td.AffineTransform(low, high - low)
    theirs = td.TransformedDistribution(td.Beta(dist.alpha.double(), dist.beta.double()), [move])
    sent = torch.from_numpy(head.env_action(drawn.numpy())).double()
    inside = ((drawn > 0.01) & (drawn < 0.99)).all(-1)  # nearer to the bounds the sent float32 tells too little
    assert inside.sum() > 100
    assert torch.allclose(dist.log_prob(drawn)[inside].double(), theirs.log_prob(sent).sum(-1)[inside], atol=1e-3)


def test_both_parameters_of_a_beta_are_above_one_whatever_the_network_says():
    raw = torch.tensor([[-1e4, -1e4], [0.0, 0.0], [50.0, -50.0]])
    said = BetaHead(Box((1,), 0.0, 1.0)).distribution(raw, raw, None).params()
    assert (said["alpha"] > 1).all()
    assert (said["beta"] > 1).all()
    assert said["alpha"][1].item() == pytest.approx(1 + math.log(2), abs=1e-3)
    assert said["alpha"][2].item() == pytest.approx(51, abs=1e-3)


@pytest.mark.parametrize("noise", ["beta", "squash"])
@pytest.mark.parametrize("space", [Box((2,)), Box((2,), (-1.0, -1.0), (1.0, math.inf)), Hybrid((2,), Box((1,)))])
def test_a_head_that_stays_within_its_bounds_refuses_open_ones(noise, space):
    with pytest.raises(SpaceError, match=f"{noise}=True needs an action space with finite bounds"):
        make_head(space, 4, NetConfig(**{noise: True}))


def test_beta_needs_bounds_with_a_width():
    with pytest.raises(SpaceError, match="beta=True needs bounds with a finite width above 0"):
        make_head(Box((2,), (-1.0, 0.5), (1.0, 0.5)), 4, NetConfig(beta=True))


@pytest.mark.parametrize("space", [Discrete(3), MultiDiscrete((2, 2))])
def test_beta_is_refused_for_discrete_actions(space):
    with pytest.raises(ConfigError, match=r"beta=True is for continuous actions; .*Discrete"):
        make_head(space, 4, NetConfig(beta=True))


@pytest.mark.parametrize(("one", "two"), [("squash", "gsde"), ("squash", "beta"), ("gsde", "beta")])
def test_two_kinds_of_noise_together_are_refused(one, two):
    with pytest.raises(ConfigError, match=f"{one}=True and {two}=True cannot be combined"):
        NetConfig(**{one: True, two: True})


HYBRID = Hybrid((2, 3), Box((2, 2), (-1.0, 0.0, 2.0, -9.0), (1.0, 5.0, 2.5, -8.0)))
NOISES: dict[str, dict[str, bool]] = {"gaussian": {}, "tanh": {"squash": True}, "beta": {"beta": True}}


def hybrid(**knobs: bool) -> HybridHead:
    head = make_head(HYBRID, 6, NetConfig(log_std_init=1.5, **knobs))
    assert isinstance(head, HybridHead)
    return head


@pytest.mark.parametrize("kind", NOISES)
def test_a_hybrid_action_is_choices_as_they_are_and_numbers_within_their_bounds(kind):
    head = hybrid(**NOISES[kind])
    raw = 3.0 * torch.randn(2_000, head.outputs, generator=seeded())
    drawn = head.distribution(raw, torch.zeros(2_000, 6), None).sample(seeded(1)).detach().numpy()
    sent = head.env_action(drawn)
    assert sent.shape == (2_000, 6)
    assert sent.dtype == np.float32
    assert np.array_equal(sent[:, :2], drawn[:, :2])
    assert set(sent[:, 0]) == {0, 1}
    assert set(sent[:, 1]) == {0, 1, 2}
    low, high = (x.ravel() for x in HYBRID.box.bounds())
    assert ((low <= sent[:, 2:]) & (sent[:, 2:] <= high)).all()
    assert (sent[:, 2:].std(axis=0) > 0.05 * (high - low)).all()


@pytest.mark.parametrize("kind", NOISES)
def test_a_hybrid_is_a_head_for_each_half_side_by_side(kind):
    head, features = hybrid(**NOISES[kind]), torch.zeros(50, 6)
    raw = torch.randn(50, head.outputs, generator=seeded())
    dist = head.distribution(raw, features, None)
    row = dist.sample(seeded())
    choices = make_head(MultiDiscrete((2, 3)), 6, NetConfig()).distribution(raw[:, :5], features, None)
    numbers = make_head(HYBRID.box, 6, NetConfig(log_std_init=1.5, **NOISES[kind]))
    alone = choices.log_prob(row[:, :2].long()) + numbers.distribution(raw[:, 5:], features, None).log_prob(row[:, 2:])
    assert torch.allclose(dist.log_prob(row), alone, atol=1e-5)
    assert head.choices() == (2, 3)
    assert head.action_std() == numbers.action_std()


def test_a_mask_of_a_hybrid_is_over_its_choices():
    head = hybrid()
    mask = torch.tensor([[False, True, True, False, True]]).expand(5_000, 5)
    dist = head.distribution(torch.zeros(5_000, head.outputs), torch.zeros(5_000, 6), mask)
    drawn = dist.sample(seeded())
    assert set(map(tuple, drawn[:, :2].tolist())) == {(1.0, 0.0), (1.0, 2.0)}
    assert dist.mode()[0, 0] == 1
    free = head.distribution(torch.zeros(1, head.outputs), torch.zeros(1, 6), None).entropy()
    assert (free - dist.entropy()[0]).item() == pytest.approx(math.log(2) + math.log(3) - math.log(2), abs=1e-5)


def test_gsde_inside_a_hybrid_moves_the_numbers_by_its_matrix_and_draws_the_choices():
    head = hybrid(gsde=True)
    noise = head.noise()
    assert noise is not None
    features = torch.randn(3_000, 6, generator=seeded())
    raw = torch.zeros(3_000, head.outputs)
    raw[:, 5:] = 0.25
    dist = head.distribution(raw, features, None)
    matrix = torch.randn(3_000, 6, 4, generator=seeded(1))
    row = head.explore(dist, features, matrix, seeded(2))
    assert torch.allclose(row[:, 2:], 0.25 + torch.einsum("nf,nfa->na", features, matrix), atol=1e-5)
    assert row[:, 0].mean().item() == pytest.approx(0.5, abs=0.04)
    assert row[:, 1].mean().item() == pytest.approx(1.0, abs=0.06)
    same = head.explore(dist, features, matrix, seeded(3))
    assert torch.equal(same[:, 2:], row[:, 2:])
    assert not torch.equal(same[:, :2], row[:, :2])


@pytest.mark.parametrize("knobs", [{}, {"squash": True}, {"beta": True}])
def test_a_hybrid_without_gsde_has_no_noise_that_is_a_function_of_the_state(knobs):
    assert hybrid(**knobs).noise() is None
