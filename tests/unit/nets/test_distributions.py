"""Categorical distributions against torch.distributions; masks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import distributions as td

from surefoot.errors import AllActionsMasked
from surefoot.nets.distributions import Categorical, MultiCategorical, mask_logits, require_choice


def noise(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def chi_square(counts: np.ndarray, probs: np.ndarray) -> float:
    expected = probs * counts.sum()
    return float(((counts - expected) ** 2 / expected).sum())


def test_a_categorical_says_what_torchs_says():
    logits = noise(50, 6) * 3
    ours, theirs = Categorical(logits), td.Categorical(logits=logits)
    action = torch.arange(50) % 6
    assert torch.allclose(ours.log_prob(action), theirs.log_prob(action), atol=1e-6)
    assert torch.allclose(ours.entropy(), theirs.entropy(), atol=1e-6)
    assert torch.equal(ours.mode(), theirs.mode)
    assert torch.allclose(ours.params()["probs"], theirs.probs, atol=1e-6)


def test_choices_are_drawn_as_often_as_their_probabilities_say():
    probs = torch.tensor([0.5, 0.25, 0.15, 0.08, 0.02])
    drawn = Categorical(probs.log().expand(100_000, 5)).sample(seeded())
    counts = torch.bincount(drawn, minlength=5).numpy()
    assert chi_square(counts, probs.numpy()) < 18.47  # 99.9 % of χ² with 4 degrees of freedom


def test_a_forbidden_choice_is_never_drawn_even_if_the_network_loves_it():
    logits = torch.tensor([0.0, 60.0, 1.0, -3.0, 60.0]).expand(100_000, 5)
    mask = torch.tensor([True, False, True, True, False])
    drawn = Categorical(mask_logits(logits, mask.expand_as(logits))).sample(seeded())
    counts = torch.bincount(drawn, minlength=5).numpy()
    assert counts[1] == counts[4] == 0
    left = torch.tensor([0.0, 1.0, -3.0]).softmax(0).numpy()
    assert chi_square(counts[[0, 2, 3]], left) < 13.82  # 2 degrees of freedom


def test_a_masked_categorical_is_the_one_over_what_is_left():
    logits, mask = noise(1, 5), torch.tensor([[True, False, True, True, False]])
    masked, left = Categorical(mask_logits(logits, mask)), td.Categorical(logits=logits[mask])
    assert masked.entropy().item() == pytest.approx(left.entropy().item(), abs=1e-6)
    for ours, theirs in ((0, 0), (2, 1), (3, 2)):
        assert masked.log_prob(torch.tensor([ours])).item() == pytest.approx(
            left.log_prob(torch.tensor(theirs)).item(), abs=1e-6
        )


def test_the_mode_is_the_best_of_what_is_allowed():
    logits, mask = torch.tensor([[5.0, 9.0, 7.0]]), torch.tensor([[True, False, True]])
    assert Categorical(mask_logits(logits, mask)).mode().item() == 2


def test_a_single_allowed_choice_is_certain_and_has_a_finite_gradient():
    logits = torch.tensor([[3.0, -2.0, 8.0]], requires_grad=True)
    dist = Categorical(mask_logits(logits, torch.tensor([[False, True, False]])))
    log_prob, entropy = dist.log_prob(torch.tensor([1])), dist.entropy()
    assert (log_prob.item(), entropy.item()) == (0.0, 0.0)
    (log_prob + entropy).sum().backward()
    assert torch.equal(logits.grad, torch.zeros(1, 3))


def test_the_gradient_of_a_masked_entropy_is_finite_and_zero_where_forbidden():
    logits = (noise(4, 5) * 30).requires_grad_()
    mask = torch.tensor([[True, True, False, True, False]]).expand(4, 5)
    Categorical(mask_logits(logits, mask)).entropy().sum().backward()
    assert torch.isfinite(logits.grad).all()
    assert (logits.grad[~mask] == 0).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_a_mask_works_in_every_float(dtype):
    logits = torch.tensor([[1.0, 2.0, 3.0]]).to(dtype)
    dist = Categorical(mask_logits(logits, torch.tensor([[True, True, False]])))
    expected = torch.tensor([1.0, 2.0]).softmax(0)
    assert torch.allclose(dist.params()["probs"][0, :2], expected, atol=1e-6)
    assert dist.params()["probs"][0, 2].item() == 0.0
    assert torch.isfinite(dist.log_probs).all()
    assert torch.isfinite(dist.entropy()).all()


def test_a_row_that_allows_nothing_is_named():
    with pytest.raises(AllActionsMasked, match="row 2"):
        require_choice(torch.tensor([[True, False], [False, True], [False, False]]))


def test_several_choices_add_up():
    logits = noise(20, 9)
    dist = MultiCategorical(logits, (2, 3, 4))
    parts = [td.Categorical(logits=part) for part in logits.split([2, 3, 4], dim=-1)]
    action = torch.stack([torch.arange(20) % n for n in (2, 3, 4)], dim=-1)
    log_prob = sum(part.log_prob(action[:, k]) for k, part in enumerate(parts))
    assert torch.allclose(dist.log_prob(action), log_prob, atol=1e-6)
    assert torch.allclose(dist.entropy(), sum(part.entropy() for part in parts), atol=1e-6)
    assert torch.equal(dist.mode(), torch.stack([part.mode for part in parts], dim=-1))


def test_several_choices_are_drawn_independently():
    logits = torch.tensor([0.3, -0.3, 0.0, 1.0, -1.0]).expand(100_000, 5)
    drawn = MultiCategorical(logits, (2, 3)).sample(seeded())
    joint = torch.bincount(drawn[:, 0] * 3 + drawn[:, 1], minlength=6).numpy()
    probs = torch.outer(logits[0, :2].softmax(0), logits[0, 2:].softmax(0)).flatten().numpy()
    assert chi_square(joint, probs) < 20.52  # 5 degrees of freedom
