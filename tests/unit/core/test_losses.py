from __future__ import annotations

import math

import pytest
import torch

from surefoot.core.batch import Batch, Evaluation
from surefoot.core.losses import clipped_surrogate, ppo_loss, value_loss


def t(*xs):
    return torch.tensor(xs)


def batch(n=1, **parts):
    base = {
        "obs": {},
        "action": torch.zeros(1, n),
        "log_prob": torch.zeros(1, n),
        "value": torch.zeros(1, n),
        "advantage": torch.ones(1, n),
        "target": torch.zeros(1, n),
    }
    return Batch(**{**base, **parts})


@pytest.mark.parametrize(
    ("ratio", "advantage", "expected"),
    [
        (1.0, 2.0, -2.0),
        (1.5, 1.0, -1.2),  # a gain is held at 1 + ε
        (1.5, -1.0, 1.5),  # a loss is not
        (0.5, 1.0, -0.5),
        (0.5, -1.0, 0.8),  # pessimistic: the larger of ½ and 0.8
    ],
)
def test_the_surrogate_is_the_pessimistic_one(ratio, advantage, expected):
    assert clipped_surrogate(t(math.log(ratio)), t(advantage), clip=0.2).item() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("ratio", "advantage", "expected", "slope"),
    [
        (2.0, -1.0, 2.0, 2.0),  # below the second bound nothing changes; d(-A r)/d log r = -A r
        (5.0, -1.0, 3.0, 0.0),  # beyond it the loss stands still
        (5.0, -2.0, 6.0, 0.0),
        (5.0, 1.0, -1.2, 0.0),  # a gain is held at 1 + ε as ever
        (0.5, -1.0, 0.8, 0.0),
    ],
)
def test_the_second_clip_bounds_the_loss_of_bad_actions_only(ratio, advantage, expected, slope):
    x = torch.tensor([math.log(ratio)], requires_grad=True)
    loss = clipped_surrogate(x, t(advantage), clip=0.2, dual_clip=3.0).sum()
    loss.backward()
    assert loss.item() == pytest.approx(expected)
    assert x.grad.item() == pytest.approx(slope)


@pytest.mark.parametrize("log_ratio", [-1e4, -200.0, -89.0, 89.0, 200.0, 1e4])
@pytest.mark.parametrize("advantage", [-1.0, 0.0, 1.0])
def test_a_huge_log_ratio_leaves_loss_and_gradient_finite(log_ratio, advantage):
    x = torch.tensor([log_ratio], requires_grad=True)
    loss = clipped_surrogate(x, t(advantage), clip=0.2).sum()
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(x.grad).all()


def test_the_value_loss_is_half_the_square():
    assert value_loss(t(3.0), t(1.0), t(0.0), clip=None).item() == 2.0


def test_a_clipped_value_loss_takes_the_larger_error():
    # Old 0, new 3, clip 1: clipped value 1. Target 3: errors 0 and 4 → ½·4. Target 0: errors 9 and 1 → ½·9.
    assert value_loss(t(3.0), t(3.0), t(0.0), clip=1.0).item() == 2.0
    assert value_loss(t(3.0), t(0.0), t(0.0), clip=1.0).item() == 4.5


def test_the_parts_add_up_with_their_signs():
    seen = Evaluation(torch.zeros(1, 1), torch.full((1, 1), 0.7), torch.full((1, 1), 2.0))
    losses = ppo_loss(seen, batch(), torch.ones(1, 1), clip=0.2, value_clip=None, vf_coef=0.5, ent_coef=0.1)
    # policy -1, value ½·2² = 2, entropy 0.7: -1 + 0.5·2 - 0.1·0.7
    assert losses.total.item() == pytest.approx(-0.07)


def test_padding_does_not_count_in_any_part():
    valid = torch.tensor([[True, False]])
    seen = Evaluation(torch.tensor([[0.1, 50.0]]), torch.tensor([[0.7, 1e9]]), torch.tensor([[2.0, float("nan")]]))
    padded = ppo_loss(
        seen, batch(2, valid=valid), torch.tensor([[1.0, 1e9]]), clip=0.2, value_clip=0.3, vf_coef=0.5, ent_coef=0.1
    )
    alone = ppo_loss(
        Evaluation(*(x[:, :1] for x in (seen.log_prob, seen.entropy, seen.value))),
        batch(),
        torch.ones(1, 1),
        clip=0.2,
        value_clip=0.3,
        vf_coef=0.5,
        ent_coef=0.1,
    )
    assert padded.total.item() == alone.total.item()


def test_the_reference_penalty_is_never_negative_and_pulls_towards_the_reference():
    log_prob = torch.tensor([[-1.0]], requires_grad=True)
    seen = Evaluation(log_prob, torch.zeros(1, 1), torch.zeros(1, 1))
    part = batch(log_prob=torch.tensor([[-1.0]]), ref_log_prob=torch.tensor([[-2.0]]))
    losses = ppo_loss(seen, part, torch.zeros(1, 1), clip=0.2, value_clip=None, vf_coef=0.0, ent_coef=0.0, kl_coef=1.0)
    # k3 of log(ref/π) = -1: e⁻¹ - 1 + 1
    assert losses.total.item() == pytest.approx(math.exp(-1.0))
    losses.total.backward()
    assert log_prob.grad.item() > 0  # going down, log π goes down, towards the reference
