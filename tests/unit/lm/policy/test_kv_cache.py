"""The cache of rows of different lengths, with numbers that show where they came from."""

from __future__ import annotations

import torch

from surefoot.lm.policy.kv_cache import Prefill, Slots


def prefilled(*values: float, length: int = 2) -> Prefill:
    cache = Prefill()
    key = torch.tensor(values).view(-1, 1, 1, 1).expand(-1, 1, length, 1)
    cache.update(key, -key, 0)
    return cache


def slots() -> Slots:
    cache = Slots(2, 5)
    cache.fill(torch.tensor([0, 1]), prefilled(1.0, 2.0), torch.tensor([2, 1]))
    return cache


def test_each_row_attends_to_its_own_length_and_the_new_token():
    cache = slots()
    position, mask = cache.begin()
    assert position.tolist() == [[2], [1]]
    assert mask[:, 0, 0].tolist() == [[True, True, True], [True, True, False]]


def test_a_token_is_written_behind_the_last_one_of_its_row():
    cache = slots()
    cache.begin()
    token = torch.tensor([7.0, 8.0]).view(2, 1, 1, 1)
    keys, values = cache.update(token, -token, 0)
    assert keys[:, 0, :, 0].tolist() == [[1.0, 1.0, 7.0], [2.0, 8.0, 0.0]]
    assert values[1, 0, 1, 0] == -8.0


def test_rows_of_one_length_need_no_mask():
    cache = Slots(2, 5)
    cache.fill(torch.tensor([0, 1]), prefilled(1.0, 2.0), torch.tensor([2, 2]))
    assert cache.begin()[1] is None


def test_dropped_rows_leave_the_others_in_place():
    cache = slots()
    cache.keep(torch.tensor([1]))
    assert (cache.rows, cache.at.tolist(), cache.keys[0][0, 0, 0, 0].item()) == (1, [1], 2.0)
