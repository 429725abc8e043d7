"""GAE by hand, in its two limits, and across ends of episodes."""

import pytest
import torch

from surefoot.core.advantage import gae
from surefoot.errors import ShapeError


def column(*numbers: float) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.float64).unsqueeze(1)


def flags(*which: int) -> torch.Tensor:
    return torch.tensor(which, dtype=torch.bool).unsqueeze(1)


def test_three_steps_by_hand():
    # δ = (1 + 0.5·3 - 2, 0 + 0.5·4 - 3, 2 + 0.5·6 - 4) = (0.5, -1, 1); γλ = 0.25.
    result = gae(column(1, 0, 2), column(2, 3, 4), column(3, 4, 6), flags(0, 0, 0), flags(0, 0, 0), gamma=0.5, lam=0.5)
    assert result.flatten().tolist() == [0.5 + 0.25 * (-1 + 0.25 * 1), -1 + 0.25 * 1, 1.0]


def test_with_lambda_one_it_is_the_discounted_return_minus_the_value():
    reward, value = column(1, 2, 3), column(5, 7, 11)
    result = gae(reward, value, column(7, 11, 0), flags(0, 0, 1), flags(0, 0, 1), gamma=0.9, lam=1.0)
    returns = torch.tensor([1 + 0.9 * (2 + 0.9 * 3), 2 + 0.9 * 3, 3.0], dtype=torch.float64)
    torch.testing.assert_close(result.flatten(), returns - value.flatten())


def test_a_terminated_step_ignores_its_successor_and_a_truncated_one_does_not():
    terminated = gae(column(1), column(0), column(float("nan")), flags(1), flags(1), gamma=0.5, lam=0.9)
    truncated = gae(column(1), column(0), column(8), flags(0), flags(1), gamma=0.5, lam=0.9)
    assert (terminated.item(), truncated.item()) == (1.0, 5.0)


def test_no_advantage_crosses_an_end_or_an_invalid_step():
    arguments = (column(0, 100), column(0, 0), column(0, 0), flags(0, 1))
    assert gae(*arguments, flags(1, 1), gamma=1.0, lam=1.0)[0].item() == 0.0
    assert gae(*arguments, flags(0, 1), flags(1, 0), gamma=1.0, lam=1.0).flatten().tolist() == [0.0, 0.0]


def test_a_wrong_shape_is_named_with_both_shapes():
    with pytest.raises(ShapeError, match=r"next_value is \[1, 1\] but reward is \[2, 1\]"):
        gae(column(1, 2), column(1, 2), column(1), flags(0, 0), flags(0, 0), gamma=1.0, lam=1.0)
