"""Our optimiser against torch's own classes, step by step, and its memory put away and taken up."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from surefoot.errors import ConfigError
from surefoot.learn.config import PPOConfig
from surefoot.learn.optimizer import Optimizer, critic_of

LR = 0.01
THEIRS = {
    "adam": lambda p, m: torch.optim.Adam(p, lr=LR, eps=1e-5, weight_decay=0.1),
    "adamw": lambda p, m: torch.optim.AdamW(p, lr=LR, eps=1e-5, weight_decay=0.1),
    "sgd": lambda p, m: torch.optim.SGD(p, lr=LR, momentum=m, weight_decay=0.1),
    "rmsprop": lambda p, m: torch.optim.RMSprop(p, lr=LR, eps=1e-5, momentum=m, weight_decay=0.1),
}
CASES = [("adam", 0.0), ("adamw", 0.0), ("sgd", 0.0), ("sgd", 0.7), ("rmsprop", 0.0), ("rmsprop", 0.7)]


def config(name: str, momentum: float = 0.0) -> PPOConfig:
    return PPOConfig(optimizer=name, weight_decay=0.1, momentum=momentum)


def parameters() -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(0)
    return [nn.Parameter(torch.randn(shape, generator=generator)) for shape in ((3, 2), (2,), ())]


def set_gradients(trained: list[nn.Parameter], seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for p in trained:
        p.grad = torch.randn(p.shape, generator=generator)


@pytest.mark.parametrize(("name", "momentum"), CASES)
def test_it_moves_every_weight_as_torchs_own_does(name, momentum):
    mine, yours = parameters(), parameters()
    ours, theirs = Optimizer(mine, config(name, momentum)), THEIRS[name](yours, momentum)
    for seed in range(5):
        set_gradients(mine, seed)
        set_gradients(yours, seed)
        ours.step(LR)
        theirs.step()
        assert all(torch.allclose(p, q, rtol=1e-6, atol=1e-7) for p, q in zip(mine, yours, strict=True))


@pytest.mark.parametrize("name", THEIRS)
def test_a_weight_without_a_gradient_stays_and_its_clock_stands(name):
    mine, yours = parameters(), parameters()
    ours, theirs = Optimizer(mine, config(name)), THEIRS[name](yours, 0.0)
    for seed in range(4):
        set_gradients(mine, seed)
        set_gradients(yours, seed)
        if seed % 2:
            mine[1].grad = yours[1].grad = None
        ours.step(LR)
        theirs.step()
    assert all(torch.allclose(p, q, rtol=1e-6, atol=1e-7) for p, q in zip(mine, yours, strict=True))


def test_the_rate_is_that_of_each_step():
    (weight,) = trained = [nn.Parameter(torch.zeros(1))]
    optimizer = Optimizer(trained, PPOConfig(optimizer="sgd"))
    for rate in (0.5, 0.25):
        weight.grad = torch.ones(1)
        optimizer.step(rate)
    assert weight.item() == -0.75


def test_gradients_are_scaled_down_together_and_never_up():
    a, b = trained = [nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1))]
    optimizer = Optimizer(trained, PPOConfig())
    a.grad, b.grad = torch.tensor([3.0]), torch.tensor([4.0])
    assert optimizer.clip(10.0).item() == 5.0
    assert (a.grad.item(), b.grad.item()) == (3.0, 4.0)
    assert optimizer.clip(1.0).item() == 5.0
    assert (a.grad.item(), b.grad.item()) == pytest.approx((0.6, 0.8), rel=1e-5)


def test_forgotten_gradients_are_none():
    trained = parameters()
    optimizer = Optimizer(trained, PPOConfig())
    set_gradients(trained, 0)
    optimizer.zero_grad()
    assert all(p.grad is None for p in trained)


def test_frozen_parameters_are_left_out():
    free, frozen, _ = parameters()
    frozen.requires_grad_(False)
    assert [p is free for p in Optimizer([free, frozen], PPOConfig()).parameters] == [True]


@pytest.mark.parametrize(("name", "momentum"), CASES)
def test_a_memory_put_back_goes_on_to_the_last_bit(name, momentum):
    one, two = parameters(), parameters()
    first, second = Optimizer(one, config(name, momentum)), Optimizer(two, config(name, momentum))
    for seed in range(3):
        set_gradients(one, seed)
        first.step(LR)
    for p, q in zip(one, two, strict=True):
        q.data.copy_(p.data)
    second.load(first.tensors())
    for seed in range(3, 6):
        for trained, optimizer in ((one, first), (two, second)):
            set_gradients(trained, seed)
            optimizer.step(LR)
    assert all(torch.equal(p, q) for p, q in zip(one, two, strict=True))


def test_the_critic_learns_at_its_own_rate():
    plain, critic = (torch.nn.Parameter(torch.ones(3)) for _ in range(2))
    optimizer = Optimizer([plain, critic], PPOConfig(optimizer="sgd", critic_lr_scale=10.0), critic=[critic])
    for p in (plain, critic):
        p.grad = torch.ones(3)
    optimizer.step(0.01)
    assert torch.allclose(plain, torch.full((3,), 0.99))
    assert torch.allclose(critic, torch.full((3,), 0.90))


def test_a_rate_for_a_critic_that_is_not_apart_is_refused():
    with pytest.raises(ConfigError, match="no parameters that only the critic uses"):
        critic_of(object(), PPOConfig(critic_lr_scale=2.0))
    assert critic_of(object(), PPOConfig()) == []


def test_it_follows_parameters_that_come_go_and_change():
    old = parameters()
    optimizer = Optimizer(old, config("adam"))
    set_gradients(old, 0)
    optimizer.step(LR)
    kept = optimizer.slots["exp_avg"][0].clone()
    new = nn.Parameter(torch.ones(5))
    frozen = nn.Parameter(torch.ones(2), requires_grad=False)
    old[0].data = old[0].data.double()
    optimizer.follow([new, old[0], frozen])
    assert [id(p) for p in optimizer.parameters] == [id(new), id(old[0])]
    assert torch.equal(optimizer.slots["exp_avg"][1], kept.double())
    assert [float(x) for x in optimizer.steps] == [0.0, 1.0]
    assert optimizer.groups == [(1.0, [0, 1])]
    optimizer.zero_grad()
    set_gradients([new], 1)
    optimizer.step(LR)
    assert not torch.equal(new, torch.ones(5))
    old[0].data = torch.zeros(7)
    optimizer.follow([new, old[0]])
    assert optimizer.slots["exp_avg"][1].tolist() == [0.0] * 7
