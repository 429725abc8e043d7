"""Rows of prompts and responses, by hand."""

from __future__ import annotations

import torch

from surefoot.lm.sampling.layout import buckets, join, predicting

PROMPT = torch.tensor([[1, 2, 3], [4, 0, 0]])
RESPONSE = torch.tensor([[5, 0], [6, 7]])


def rows():
    return join(PROMPT, torch.tensor([3, 1]), RESPONSE, torch.tensor([1, 2]))


def test_a_response_follows_its_prompt_without_a_gap():
    joined = rows()
    assert joined.ids[0, :4].tolist() == [1, 2, 3, 5]
    assert joined.ids[1, :3].tolist() == [4, 6, 7]
    assert joined.read.tolist() == [3, 2]


def test_a_token_is_predicted_by_the_state_before_it():
    row, position = predicting(rows())
    assert list(zip(row.tolist(), position.tolist(), strict=True)) == [(0, 2), (1, 0), (1, 1)]


def test_rows_share_a_bucket_down_to_three_quarters_of_the_longest():
    groups = [group.tolist() for group in buckets(torch.tensor([100, 40, 75, 74, 0]))]
    assert groups == [[0, 2], [3], [1]]
