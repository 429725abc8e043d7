"""Memory against torch's own cells, and against being walked through step by step."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from surefoot.nets.recurrent import GATES, Memory

KINDS = ["gru", "lstm"]


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def a_memory(kind: str, *, inputs: int = 3, size: int = 5) -> Memory:
    """One whose biases are not 0, so that a forgotten one shows."""
    memory = Memory(kind, inputs, size, ortho_init=True)
    with torch.no_grad():
        memory.inward.bias.copy_(noise(GATES[kind] * size, seed=8))
        memory.onward.bias.copy_(noise(GATES[kind] * size, seed=9))
    return memory


def torchs(memory: Memory) -> nn.GRU | nn.LSTM:
    """torch's own layer with the same weights."""
    layer = {"gru": nn.GRU, "lstm": nn.LSTM}[memory.kind](memory.inward.in_features, memory.size)
    own = (memory.inward.weight, memory.onward.weight, memory.inward.bias, memory.onward.bias)
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    layer.load_state_dict(dict(zip(names, own, strict=True)))
    return layer


@pytest.mark.parametrize("kind", KINDS)
def test_a_memory_says_what_torchs_says(kind):
    memory = a_memory(kind)
    x, carry = noise(7, 4, 3), noise(4, memory.carried, seed=1)
    ours, onward = memory(x, carry, None)
    before = tuple(part.unsqueeze(0).contiguous() for part in carry.split(5, dim=-1))
    theirs, after = torchs(memory)(x, before if kind == "lstm" else before[0])
    assert torch.allclose(ours, theirs, atol=1e-6)
    expected = torch.cat(after, dim=-1) if kind == "lstm" else after
    assert torch.allclose(onward, expected[0], atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_memories_begin_orthogonal_with_gain_one_and_no_bias(kind):
    for linear in (Memory(kind, 3, 5, ortho_init=True).inward, Memory(kind, 3, 5, ortho_init=True).onward):
        w = linear.weight.detach()
        assert torch.allclose(w.T @ w, torch.eye(w.shape[1]), atol=1e-5)
        assert (linear.bias == 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_before_the_first_step_nothing_is_remembered(kind):
    memory = Memory(kind, 3, 5, ortho_init=True)
    assert torch.equal(memory.empty(4), torch.zeros(4, {"gru": 5, "lstm": 10}[kind]))


@pytest.mark.parametrize("kind", KINDS)
def test_where_an_episode_begins_nothing_is_carried_in_that_stream_and_all_in_the_others(kind):
    memory = a_memory(kind)
    x, carry = noise(6, 3, 3), noise(3, memory.carried, seed=1)
    start = torch.zeros(6, 3, dtype=torch.bool)
    start[0, 0] = start[3, 1] = start[5, 1] = True
    ours, onward = memory(x, carry, start)
    nothing = memory.empty(1)
    fresh, _ = memory(x[:, :1], nothing, None)
    assert torch.allclose(ours[:, :1], fresh, atol=1e-6)
    pieces = [memory(x[a:b, 1:2], carry[1:2] if a == 0 else nothing, None) for a, b in ((0, 3), (3, 5), (5, 6))]
    assert torch.allclose(ours[:, 1:2], torch.cat([piece for piece, _ in pieces]), atol=1e-6)
    assert torch.allclose(onward[1:2], pieces[-1][1], atol=1e-6)
    undisturbed, _ = memory(x[:, 2:], carry[2:], None)
    assert torch.allclose(ours[:, 2:], undisturbed, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_no_gradient_runs_through_the_beginning_of_an_episode(kind):
    memory = a_memory(kind)
    x, start = noise(4, 1, 3).requires_grad_(), torch.tensor([[False], [False], [True], [False]])
    hidden, _ = memory(x, noise(1, memory.carried), start)
    (grad,) = torch.autograd.grad(hidden[3].sum(), x)
    assert (grad[:2] == 0).all()
    assert (grad[2:] != 0).any(dim=-1).all()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_carried_is_given_back_anew_and_never_changed(kind):
    memory = a_memory(kind)
    carry, start = noise(3, memory.carried), torch.tensor([[True, False, True]])
    kept = carry.clone()
    _, onward = memory(noise(1, 3, 3), carry, start)
    assert torch.equal(carry, kept)
    assert onward.data_ptr() != carry.data_ptr()


@pytest.mark.parametrize("kind", KINDS)
def test_without_the_kernel_it_is_the_same_memory(kind: str) -> None:
    memory, alone = a_memory(kind), a_memory(kind)
    alone.load_state_dict(memory.state_dict())
    alone.by_kernel = False
    x, carry = noise(6, 4, 3, seed=1), noise(4, memory.carried, seed=2)
    start = noise(6, 4, seed=3) > 0.8
    for one, other in zip(memory(x, carry, start), alone(x, carry, start), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
