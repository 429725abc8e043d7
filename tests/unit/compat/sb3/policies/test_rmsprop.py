import math

import pytest
import torch

from surefoot.compat.sb3.policies.rmsprop import RMSpropTFLike


def test_the_first_step_has_the_average_start_at_one():
    p = torch.nn.Parameter(torch.tensor([1.0]))
    p.grad = torch.tensor([2.0])
    RMSpropTFLike([p], lr=0.1, alpha=0.9, eps=0.5).step()
    # 0.9 · 1 + 0.1 · 2² = 1.3, and eps is inside of the root.
    assert p.item() == pytest.approx(1.0 - 0.1 * 2.0 / math.sqrt(1.3 + 0.5))


def test_momentum_and_centering_follow_their_definitions():
    p = torch.nn.Parameter(torch.tensor([0.0]))
    optimizer = RMSpropTFLike([p], lr=1.0, alpha=0.5, eps=0.0, momentum=0.5, centered=True)
    square, mean, speed, x = 1.0, 0.0, 0.0, 0.0
    for grad in (1.0, -2.0, 0.5):
        p.grad = torch.tensor([grad])
        optimizer.step()
        square, mean = 0.5 * square + 0.5 * grad**2, 0.5 * mean + 0.5 * grad
        speed = 0.5 * speed + grad / math.sqrt(square - mean**2)
        x -= speed
        assert p.item() == pytest.approx(x, rel=1e-5)


def test_a_negative_option_is_refused():
    with pytest.raises(ValueError, match="lr is -1"):
        RMSpropTFLike([torch.nn.Parameter(torch.zeros(1))], lr=-1)
