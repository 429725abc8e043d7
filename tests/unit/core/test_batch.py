"""A batch selects columns of every field; the context has no time axis."""

import torch

from surefoot.core.batch import Batch


def a_batch() -> Batch:
    steps = torch.arange(6.0).view(2, 3)
    return Batch(
        obs={"obs": steps.unsqueeze(-1)},
        action=steps.long(),
        log_prob=-steps,
        value=steps,
        advantage=steps,
        target=steps + 1,
        context={"memory": torch.tensor([[10.0], [11.0], [12.0]])},
    )


def test_taken_columns_come_in_the_order_asked_for():
    part = a_batch().take(torch.tensor([2, 0]))
    assert part.advantage.tolist() == [[2.0, 0.0], [5.0, 3.0]]
    assert part.obs["obs"][..., 0].tolist() == [[2.0, 0.0], [5.0, 3.0]]
    assert part.context["memory"].flatten().tolist() == [12.0, 10.0]
    assert part.action_mask is None
    assert part.columns == 2


def test_a_slice_shares_memory_and_a_selection_does_not():
    batch = a_batch()
    view, copy = batch.slice(1, 3), batch.take(torch.tensor([1, 2]))
    batch.value.fill_(-1.0)
    assert view.value.tolist() == [[-1.0, -1.0], [-1.0, -1.0]]
    assert copy.value.tolist() == [[1.0, 2.0], [4.0, 5.0]]
