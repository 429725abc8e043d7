"""RND forgets its surprise where it has been, ICM where it has seen what follows."""

from __future__ import annotations

import pytest
import torch

from surefoot.data.spaces import ActionSpace, Box, Discrete, MultiDiscrete
from surefoot.nets.curiosity import InverseForward, RandomDistillation

ACTIONS: dict[str, tuple[ActionSpace, torch.Tensor]] = {
    "discrete": (Discrete(3), torch.tensor([0, 1, 2, 0])),
    "multi": (MultiDiscrete((2, 3)), torch.tensor([[0, 2], [1, 1], [0, 0], [1, 2]])),
    "box": (Box((2,), -1.0, 1.0), torch.tensor([[0.0, 2.0], [1.0, -1.0], [0.5, 0.0], [0.1, 0.2]])),
}


def rows(seed: int, n: int = 4) -> torch.Tensor:
    return torch.randn(n, 5, generator=torch.Generator().manual_seed(seed))


def descend(net: torch.nn.Module, steps: int, *batch: torch.Tensor) -> None:
    optimizer = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], lr=3e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        net.loss(*batch).backward()
        optimizer.step()


def test_a_place_that_was_learned_no_longer_surprises_and_another_still_does():
    net, action = RandomDistillation(5, (32, 32), seed=0), torch.zeros(4)
    known, other = rows(1), 3.0 * rows(2)
    before = net.surprise(known, action, known), net.surprise(other, action, other)
    descend(net, 300, known, action, known)
    after = net.surprise(known, action, known), net.surprise(other, action, other)
    assert (after[0] < 0.05 * before[0]).all()
    assert after[1].mean() > 0.2 * before[1].mean()


def test_the_target_never_learns():
    net = RandomDistillation(5, (8,), seed=0)
    target = {name: x.clone() for name, x in net.target.state_dict().items()}
    descend(net, 5, rows(1), torch.zeros(4), rows(1))
    assert all(torch.equal(x, target[name]) for name, x in net.target.state_dict().items())


def test_surprise_is_the_mean_squared_difference():
    net, x = RandomDistillation(5, (), seed=0), rows(1)
    (target,), (predictor,) = net.target, net.predictor
    gap = x @ (predictor.weight - target.weight).T + predictor.bias - target.bias
    expected = torch.stack([sum(g * g for g in row) / len(row) for row in gap])
    assert torch.allclose(net.surprise(x, torch.zeros(4), x), expected, rtol=1e-4)


def test_rnd_looks_only_at_what_was_reached():
    net, x = RandomDistillation(5, (8,), seed=0), rows(1)
    assert torch.equal(net.surprise(rows(2), torch.zeros(4), x), net.surprise(rows(3), torch.ones(4), x))


@pytest.mark.parametrize("kind", ACTIONS)
def test_icm_learns_what_follows_from_every_kind_of_action(kind: str):
    space, action = ACTIONS[kind]
    net, now, then = InverseForward(5, (16,), space, seed=0), rows(1), rows(2)
    before, loss = net.surprise(now, action, then).mean(), net.loss(now, action, then)
    descend(net, 300, now, action, then)
    assert net.surprise(now, action, then).shape == (4,)
    assert net.loss(now, action, then) < 0.5 * loss
    assert net.surprise(now, action, then).mean() < before


def test_icms_encoder_learns_from_the_inverse_model_alone():
    net, action = InverseForward(5, (16,), Discrete(3), seed=0), ACTIONS["discrete"][1]
    with torch.no_grad():
        for p in net.inverse.parameters():
            p.zero_()  # a guess that does not depend on the features hands them no gradient
    net.loss(rows(1), action, rows(2)).backward()
    assert all(p.grad is None or not p.grad.any() for p in net.encoder.parameters())
    assert any(p.grad.any() for p in net.forward_model.parameters())


def test_icm_is_surprised_by_another_action():
    net, action = InverseForward(5, (16,), Discrete(3), seed=0), ACTIONS["discrete"][1]
    now, then = rows(1), rows(2)
    descend(net, 300, now, action, then)
    other = (action + 1) % 3
    assert net.surprise(now, other, then).mean() > 2 * net.surprise(now, action, then).mean()


@pytest.mark.parametrize("make", [RandomDistillation, lambda *a, seed: InverseForward(*a, Discrete(2), seed=seed)])
def test_first_weights_follow_from_the_seed_and_leave_torchs_generator_alone(make):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    one, same, other = (make(5, (8,), seed=s).state_dict() for s in (1, 1, 2))
    assert torch.equal(torch.rand(3), expected)
    assert all(torch.equal(x, same[name]) for name, x in one.items())
    assert any(not torch.equal(x, other[name]) for name, x in one.items())
