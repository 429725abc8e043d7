"""Discrete heads: where counting starts, how masks lie."""

from __future__ import annotations

import numpy as np
import torch

from surefoot.data.spaces import Box, Discrete, MultiDiscrete
from surefoot.nets.config import NetConfig
from surefoot.nets.continuous_heads import StateDependentHead, make_head

UNIT = Box((2,), -1.0, 1.0)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_a_world_that_counts_from_five_gets_its_own_numbers():
    head = make_head(Discrete(3, start=5), 4, NetConfig())
    assert head.env_action(np.array([0, 2])).tolist() == [5, 7]


def test_a_mask_over_several_choices_lies_side_by_side():
    head = make_head(MultiDiscrete((2, 3)), 4, NetConfig())
    mask = torch.tensor([[False, True, True, False, True]]).expand(10_000, 5)
    drawn = head.distribution(torch.zeros(10_000, 5), torch.zeros(1), mask).sample(seeded())
    assert set(map(tuple, drawn.tolist())) == {(1, 0), (1, 2)}


def gsde(features: int, log_std: float = 0.0) -> StateDependentHead:
    head = make_head(UNIT, features, NetConfig(gsde=True, log_std_init=log_std))
    assert isinstance(head, StateDependentHead)
    return head


NOISES: dict[str, dict[str, bool]] = {"gaussian": {}, "tanh": {"squash": True}, "beta": {"beta": True}}
