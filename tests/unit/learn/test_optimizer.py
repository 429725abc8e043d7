"""Optimisers: the right class with the right numbers, and a memory that can be put away and taken up."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from surefoot.learn.config import PPOConfig
from surefoot.learn.optimizer import load_optimizer_tensors, make_optimizer, optimizer_tensors, set_learning_rate

KINDS = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD, "rmsprop": torch.optim.RMSprop}


def config(name: str) -> PPOConfig:
    momentum = 0.5 if name in ("sgd", "rmsprop") else 0.0
    return PPOConfig(optimizer=name, weight_decay=0.01, momentum=momentum)


def parameters() -> list[nn.Parameter]:
    torch.manual_seed(0)
    return [nn.Parameter(torch.randn(3, 2)), nn.Parameter(torch.randn(2))]


def step(optimizer: torch.optim.Optimizer, trained: list[nn.Parameter], seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for p in trained:
        p.grad = torch.randn(p.shape, generator=generator)
    optimizer.step()


@pytest.mark.parametrize("name", KINDS)
def test_the_optimiser_is_the_one_asked_for_with_its_numbers(name):
    group = make_optimizer(parameters(), config(name)).param_groups[0]
    assert isinstance(make_optimizer(parameters(), config(name)), KINDS[name])
    assert group["weight_decay"] == 0.01
    assert group.get("eps", 1e-5) == 1e-5
    assert group.get("momentum", 0.5) == 0.5


def test_frozen_parameters_are_left_out():
    free, frozen = parameters()
    frozen.requires_grad_(False)
    optimizer = make_optimizer([free, frozen], PPOConfig())
    assert [p is free for p in optimizer.param_groups[0]["params"]] == [True]


@pytest.mark.parametrize("name", KINDS)
def test_a_memory_put_back_goes_on_to_the_last_bit(name):
    one, two = parameters(), parameters()
    first, second = make_optimizer(one, config(name)), make_optimizer(two, config(name))
    for optimizer in (first, second):
        set_learning_rate(optimizer, 0.01)
    for seed in range(3):
        step(first, one, seed)
    for p, q in zip(one, two, strict=True):
        q.data.copy_(p.data)
    load_optimizer_tensors(second, {key: x.clone() for key, x in optimizer_tensors(first).items()})
    for seed in range(3, 6):
        step(first, one, seed)
        step(second, two, seed)
    assert all(torch.equal(p, q) for p, q in zip(one, two, strict=True))


def test_an_empty_memory_forgets_everything():
    trained = parameters()
    optimizer = make_optimizer(trained, PPOConfig())
    set_learning_rate(optimizer, 0.01)
    step(optimizer, trained, 0)
    assert optimizer_tensors(optimizer)
    load_optimizer_tensors(optimizer, {})
    assert optimizer_tensors(optimizer) == {}
    assert optimizer.param_groups[0]["lr"] == 0.01
