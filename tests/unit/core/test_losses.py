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


def test_a_value_is_clipped_around_the_old_one_on_both_sides():
    # Old 5, new 2, clip 1: clipped value 4. Target 2: errors 0 and 4 → ½·4. Target 6: errors 16 and 4 → ½·16.
    assert value_loss(t(2.0), t(2.0), t(5.0), clip=1.0).item() == 2.0
    assert value_loss(t(2.0), t(6.0), t(5.0), clip=1.0).item() == 8.0
    assert value_loss(t(5.5), t(5.0), t(5.0), clip=1.0).item() == 0.125  # within the clip nothing changes


def test_the_log_ratio_is_new_minus_old_and_told_before_it_is_clamped():
    seen = Evaluation(torch.tensor([[-1.0, -1.0]]), torch.zeros(1, 2), torch.zeros(1, 2))
    part = batch(2, log_prob=torch.tensor([[-1.5, -40.0]]))
    losses = ppo_loss(seen, part, torch.ones(1, 2), clip=10.0, value_clip=None, vf_coef=0.0, ent_coef=0.0)
    assert losses.log_ratio.tolist() == [[0.5, 39.0]]
    assert not losses.log_ratio.requires_grad
    # Advantage 1: the gain of the first is e^0.5, that of the second is held at 1 + ε = 11.
    assert losses.policy.item() == pytest.approx(-(math.exp(0.5) + 11.0) / 2)


def test_the_clamp_is_at_twenty():
    huge = clipped_surrogate(t(1e4), t(-1.0), clip=0.2).item()
    assert huge == pytest.approx(math.exp(20.0), rel=1e-5)


def test_an_advantage_of_zero_costs_nothing_whatever_the_second_clip():
    assert clipped_surrogate(t(5.0), t(0.0), clip=0.2, dual_clip=3.0).item() == 0.0
    small = clipped_surrogate(t(math.log(5.0)), t(0.5), clip=0.2, dual_clip=3.0).item()
    assert small == pytest.approx(-0.6)  # a gain of any size is not the second clip's business


def test_without_a_weight_entropy_and_reference_change_nothing_but_are_told():
    seen = Evaluation(torch.zeros(1, 1), torch.full((1, 1), float("inf")), torch.zeros(1, 1))
    part = batch(ref_log_prob=torch.full((1, 1), -1.0))
    losses = ppo_loss(seen, part, torch.ones(1, 1), clip=0.2, value_clip=None, vf_coef=0.5, ent_coef=0.0)
    assert losses.total.item() == -1.0
    assert losses.kl_to_reference.item() == pytest.approx(math.exp(-1.0))
    assert losses.entropy.item() == float("inf")


def test_a_reference_out_of_reach_is_held_to_twenty_too():
    seen = Evaluation(torch.zeros(1, 1), torch.zeros(1, 1), torch.zeros(1, 1))
    settings = {"clip": 0.2, "value_clip": None, "vf_coef": 0.0, "ent_coef": 0.0, "kl_coef": 1.0}
    for reference, held in ((-1e4, -20.0), (1e4, 20.0)):
        part = batch(ref_log_prob=torch.full((1, 1), reference))
        losses = ppo_loss(seen, part, torch.zeros(1, 1), **settings)
        assert losses.kl_to_reference.item() == pytest.approx(math.exp(held) - 1 - held, rel=1e-5)


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
