"""Kinds of parameters."""

import pytest

from surefoot.graph import PPOTrainerNode
from surefoot.learn.schedule import Linear, value_at


def test_a_schedule_may_be_a_function_of_the_progress() -> None:
    lr = 0.001
    node = PPOTrainerNode(lr_schedule=lambda progress: lr * (1 - progress))
    assert value_at(node.params["lr_schedule"], progress=0.25, updates=0) == pytest.approx(0.00075)
    assert PPOTrainerNode(lr_schedule="lin_1e-3").params["lr_schedule"] == Linear(1e-3)
