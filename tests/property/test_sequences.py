"""Columns of any length from rollouts of any length: every step that counts does so exactly once."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from surefoot.core.batch import Batch
from surefoot.learn.prepare import cut


class Clock:
    """Remembers at which step it is in which stream: begun anew where an episode begins, counting on elsewhere."""

    def remembered(self, batch: Batch, at: Sequence[int]) -> list[dict[str, Tensor]]:
        assert list(at) == sorted(set(at))
        return [{"memory": torch.stack([torch.full((batch.columns,), t), torch.arange(batch.columns)], -1)} for t in at]


@settings(max_examples=300)
@given(
    steps=st.integers(1, 40),
    streams=st.integers(1, 4),
    length=st.integers(1, 45),
    burn_in=st.integers(0, 45),
    masked=st.booleans(),
    seed=st.integers(0, 2**31),
)
def test_every_valid_step_counts_exactly_once_however_streams_are_cut(steps, streams, length, burn_in, masked, seed):
    generator = torch.Generator().manual_seed(seed)
    number = torch.arange(steps * streams, dtype=torch.float32).view(steps, streams)
    valid = torch.rand(steps, streams, generator=generator) < 0.6 if masked else None
    batch = Batch(
        obs={"step": number.unsqueeze(-1)},
        action=number,
        log_prob=number,
        value=number,
        advantage=number,
        target=number,
        valid=valid,
        start=torch.zeros(steps, streams, dtype=torch.bool),
        context={"memory": torch.stack([torch.zeros(streams, dtype=torch.int64), torch.arange(streams)], -1)},
    )
    columns = cut(batch, Clock(), length=length, burn_in=burn_in)
    counted = columns.action.flatten() if columns.valid is None else columns.action[columns.valid]
    expected = number.flatten() if valid is None else number[valid]
    assert sorted(counted.tolist()) == sorted(expected.tolist())
    width = columns.advantage.shape[0]
    assert width == min(steps, length + burn_in)
    for column in range(columns.columns):
        begin, stream = columns.context["memory"][column].tolist()
        at = torch.arange(begin, begin + width) * streams + stream
        assert columns.action[:, column].tolist() == at.tolist()
        assert columns.obs["step"][:, column, 0].tolist() == at.tolist()
        # What counts has its burn-in before it, or the beginning of the rollout.
        first = 0 if columns.valid is None else int(columns.valid[:, column].int().argmax())
        if columns.valid is not None and columns.valid[:, column].any() and not masked:
            assert first >= min(burn_in, begin + first)
