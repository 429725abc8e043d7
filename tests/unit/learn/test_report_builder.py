"""The numbers of an update against hand arithmetic."""

from __future__ import annotations

import math

import pytest
import torch

from surefoot.core.losses import Losses
from surefoot.learn.report_builder import Tally


def losses(log_ratio: list[float], **parts: float) -> Losses:
    def scalar(name: str) -> torch.Tensor:
        return torch.tensor(parts.get(name, 0.0), requires_grad=True)

    reference = torch.tensor(parts["reference"]) if "reference" in parts else None
    return Losses(*(scalar(n) for n in ("total", "policy", "value", "entropy")), reference, torch.tensor([log_ratio]))


def add(tally: Tally, epoch: int, said: Losses, valid: list[bool] | None = None, norm: float = 0.0, std: float = 1.0):
    mask = None if valid is None else torch.tensor([valid])
    tally.add(epoch, said, mask, torch.tensor(norm), torch.tensor(std))


def test_divergences_and_fractions_are_means_over_each_minibatch():
    tally = Tally()
    add(tally, 0, losses([0.0, math.log(2.0)]))
    add(tally, 0, losses([math.log(0.5)]))
    table = tally.table(clip=0.2)
    assert table.column("approx_kl").tolist() == pytest.approx([(1 - math.log(2.0)) / 2, -0.5 + math.log(2.0)])
    assert table.column("kl_divergence").tolist() == pytest.approx([-math.log(2.0) / 2, math.log(2.0)])
    assert table.column("clip_fraction").tolist() == [0.5, 1.0]


@pytest.mark.parametrize(("ratio", "outside"), [(1.19, 0.0), (1.21, 1.0), (0.81, 0.0), (0.79, 1.0)])
def test_the_clip_range_is_one_of_ratios_and_not_of_their_logs(ratio, outside):
    tally = Tally()
    add(tally, 0, losses([math.log(ratio)]))
    assert tally.table(clip=0.2).column("clip_fraction").item() == outside


def test_log_ratios_beyond_twenty_are_held_and_counted():
    tally = Tally()
    add(tally, 0, losses([0.0, 500.0, -500.0, 1.0]))
    table = tally.table(clip=0.2)
    assert table.column("clamped_fraction").item() == 0.5
    assert table.column("approx_kl").item() == pytest.approx(
        (math.expm1(20) - 20 + math.expm1(-20) + 20 + math.e - 2) / 4
    )


def test_only_valid_entries_count():
    tally = Tally()
    add(tally, 0, losses([0.0, 99.0]), valid=[True, False])
    table = tally.table(clip=0.2)
    assert (table.column("approx_kl").item(), table.column("clip_fraction").item()) == (0.0, 0.0)


def test_epochs_are_reported_one_by_one():
    tally = Tally()
    add(tally, 0, losses([0.0], policy=1.0, value=2.0, entropy=3.0, total=4.0), norm=5.0)
    add(tally, 0, losses([0.0], policy=3.0, value=4.0, entropy=5.0, total=6.0), norm=7.0)
    add(tally, 1, losses([0.0], policy=-1.0))
    first, second = tally.table(clip=0.2).averages()["epochs"]
    assert (first.epoch, first.minibatches) == (0, 2)
    assert (first.policy_loss, first.value_loss, first.entropy, first.loss, first.grad_norm) == (
        2.0,
        3.0,
        4.0,
        5.0,
        6.0,
    )
    assert (second.epoch, second.minibatches, second.policy_loss) == (1, 1, -1.0)


def test_the_reference_is_zero_where_there_is_none():
    tally = Tally()
    add(tally, 0, losses([0.0]))
    add(tally, 0, losses([0.0], reference=0.25))
    assert tally.table(clip=0.2).column("kl_to_reference").tolist() == [0.0, 0.25]


def test_what_is_kept_holds_no_graph():
    tally = Tally()
    add(tally, 0, losses([0.0], policy=1.0))
    assert not tally.parts[0].requires_grad
