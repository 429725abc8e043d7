"""Distributions under arbitrary logits, masks, means and bounds."""

from __future__ import annotations

import math

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps
from torch import distributions as td

from surefoot.data.spaces import Box
from surefoot.nets.continuous_distributions import Gaussian, TanhGaussian
from surefoot.nets.continuous_heads import GaussianHead, TanhHead
from surefoot.nets.distributions import Categorical, MultiCategorical, mask_logits

FEW = settings(max_examples=60)
logit = st.floats(-50, 50, width=32)


@st.composite
def masked_rows(draw):
    k = draw(st.integers(1, 7))
    logits = draw(nps.arrays(np.float32, (3, k), elements=logit))
    mask = draw(nps.arrays(np.bool_, (3, k)))
    mask[np.arange(3), draw(nps.arrays(np.int64, 3, elements=st.integers(0, k - 1)))] = True
    return torch.from_numpy(logits), torch.from_numpy(mask)


@FEW
@given(masked_rows())
def test_a_masked_categorical_is_torchs_over_what_is_allowed(rows):
    logits, mask = rows
    dist = Categorical(mask_logits(logits, mask))
    probs = dist.params()["probs"]
    assert (probs[~mask] == 0).all()
    assert torch.allclose(probs.sum(-1), torch.ones(3), atol=1e-5)
    for i in range(3):
        allowed = mask[i].nonzero()[:, 0]
        theirs = td.Categorical(logits=logits[i, allowed])
        assert math.isclose(dist.entropy()[i], theirs.entropy(), abs_tol=1e-4)
        assert -1e-6 <= dist.entropy()[i] <= math.log(len(allowed)) + 1e-5
        for j, choice in enumerate(allowed):
            said = Categorical(mask_logits(logits, mask)[i : i + 1]).log_prob(choice.reshape(1))
            assert math.isclose(said, theirs.log_prob(torch.tensor(j)), abs_tol=1e-4)


@FEW
@given(masked_rows(), st.integers(0, 2**31))
def test_what_is_drawn_and_what_is_best_are_allowed(rows, seed):
    logits, mask = rows
    dist = Categorical(mask_logits(logits, mask))
    drawn = dist.sample(torch.Generator().manual_seed(seed))
    assert mask[torch.arange(3), drawn].all()
    assert mask[torch.arange(3), dist.mode()].all()
    assert torch.isfinite(dist.log_prob(drawn)).all()


@FEW
@given(masked_rows())
def test_gradients_are_finite_and_forbidden_choices_get_none(rows):
    logits, mask = rows
    logits.requires_grad_()
    dist = Categorical(mask_logits(logits, mask))
    (dist.log_prob(dist.mode()) + dist.entropy()).sum().backward()
    assert torch.isfinite(logits.grad).all()
    assert (logits.grad[~mask] == 0).all()


@FEW
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(0, 2**31))
def test_several_choices_make_one_distribution_over_all_combinations(nvec, seed):
    logits = torch.randn(1, sum(nvec), generator=torch.Generator().manual_seed(seed))
    every = torch.cartesian_prod(*[torch.arange(n) for n in nvec]).reshape(-1, len(nvec))
    log_prob = MultiCategorical(logits.expand(len(every), -1), tuple(nvec)).log_prob(every)
    assert math.isclose(log_prob.exp().sum(), 1.0, abs_tol=1e-5)
    entropy = -(log_prob.exp() * log_prob).sum()
    assert math.isclose(entropy, MultiCategorical(logits, tuple(nvec)).entropy(), abs_tol=1e-4)


finite = st.floats(-30, 30, width=32)


@FEW
@given(
    nps.arrays(np.float32, (2, 3), elements=finite), nps.arrays(np.float32, 3, elements=st.floats(-200, 200, width=32))
)
def test_a_gaussian_is_finite_whatever_its_log_std(mean, log_std):
    m, s = torch.from_numpy(mean).requires_grad_(), torch.from_numpy(log_std).requires_grad_()
    dist = Gaussian(m, s)
    drawn = dist.sample(torch.Generator().manual_seed(0)).detach()
    (dist.log_prob(drawn) + dist.entropy()).sum().backward()
    assert torch.isfinite(m.grad).all()
    assert torch.isfinite(s.grad).all()


@FEW
@given(nps.arrays(np.float32, (4, 2), elements=finite), nps.arrays(np.float32, (4, 2), elements=finite))
def test_a_squashed_gaussian_is_finite_however_saturated(mean, action):
    m, s = torch.from_numpy(mean).requires_grad_(), torch.zeros(2, requires_grad=True)
    dist = TanhGaussian(m, s, torch.zeros(2))
    said = dist.log_prob(torch.from_numpy(action)) + dist.entropy()
    said.sum().backward()
    assert torch.isfinite(said).all()
    assert torch.isfinite(m.grad).all()
    assert torch.isfinite(s.grad).all()


@FEW
@given(
    st.floats(-100, 100, width=32),
    st.floats(0.125, 100, width=32),
    nps.arrays(np.float32, (5, 1), elements=st.floats(-100, 100, width=32)),
)
def test_what_the_world_gets_lies_within_its_bounds(low, width, action):
    box = Box((1,), low, low + width)
    least, most = box.bounds()
    for head in (GaussianHead(box, log_std_init=0.0), TanhHead(box, log_std_init=0.0)):
        sent = head.env_action(action)
        assert ((least <= sent) & (sent <= most)).all()
