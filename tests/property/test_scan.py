"""The loop of nets/recurrent.py in Python is the definition: the kernel must give its outputs and its gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from surefoot import native
from surefoot.nets import recurrent
from surefoot.nets.recurrent import GATES, Memory, can_scan, scan

pytestmark = pytest.mark.skipif(native.kernel is None, reason=native.why_not)
SETS = [] if native.kernel is None else native.kernel.instruction_sets()
DEFINITION = {"lstm": recurrent._lstm, "gru": recurrent._gru}
Unroll = Callable[..., tuple[Tensor, Tensor]]


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "kind": draw(st.sampled_from(["gru", "lstm"])),
        "steps": draw(st.sampled_from([1, 2, 3, 4, 9, 20])),
        "streams": draw(st.sampled_from([1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 17])),
        "size": draw(st.sampled_from([1, 3, 7, 8, 11, 16, 17, 31, 32, 33, 64, 100, 129])),
        "starts": draw(st.sampled_from(["none", "given, none", "some", "many", "all"])),
        "uses": draw(st.sampled_from(["both", "hidden", "carried"])),
        "seed": draw(st.integers(0, 10_000)),
    }


def tensors(case: dict[str, Any]) -> tuple[list[Tensor], Tensor | None]:
    """([inward, carry, weight, bias], start) of a case, the first four with gradients."""
    rng = torch.Generator().manual_seed(case["seed"])
    steps, streams, size = case["steps"], case["streams"], case["size"]
    width, carried = GATES[case["kind"]] * size, size * (2 if case["kind"] == "lstm" else 1)
    shapes = [(steps, streams, width), (streams, carried), (width, size), (width,)]
    scales = [1.5, 1.0, 2.0 / size**0.5, 0.5]
    made = [(torch.randn(s, generator=rng) * scale).requires_grad_() for s, scale in zip(shapes, scales, strict=True)]
    share = {"none": None, "given, none": 0.0, "some": 0.1, "many": 0.6, "all": 1.0}[case["starts"]]
    start = None if share is None else torch.rand((steps, streams), generator=rng) < share
    return made, start


def worked_out(unroll: Unroll, case: dict[str, Any]) -> dict[str, np.ndarray]:
    """Outputs and gradients of a loss that weighs every number of them differently."""
    made, start = tensors(case)
    inward, carry, weight, bias = made
    hidden, carried = unroll(inward, carry, start, weight, bias)
    rng = torch.Generator().manual_seed(case["seed"] + 1)
    parts = {"hidden": hidden, "carried": carried}
    loss = sum((x * torch.randn(x.shape, generator=rng)).sum() for n, x in parts.items() if case["uses"] in ("both", n))
    assert isinstance(loss, Tensor)
    grads = torch.autograd.grad(loss, made)
    found = {**parts, **dict(zip(("d_inward", "d_carry", "d_weight", "d_bias"), grads, strict=True))}
    return {name: x.detach().numpy() for name, x in found.items()}


def in_double(unroll: Unroll) -> Unroll:
    def run(inward: Tensor, carry: Tensor, start: Tensor | None, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        hidden, carried = unroll(inward.double(), carry.double(), start, weight.double(), bias.double())
        return hidden.float(), carried.float()

    return run


@pytest.mark.parametrize("isa", SETS)
@given(case=cases())
@settings(max_examples=120)
def test_outputs_and_gradients_are_the_definitions(isa: str, case: dict[str, Any]) -> None:
    expected = worked_out(in_double(DEFINITION[case["kind"]]), case)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SUREFOOT_KERNEL", isa)
        found = worked_out(scan, case)
    for name, x in expected.items():
        scale = max(1.0, float(np.abs(x).max()))
        np.testing.assert_allclose(found[name], x, rtol=2e-4, atol=4e-6 * scale, err_msg=name)


@pytest.mark.parametrize("isa", SETS)
@given(case=cases())
@settings(max_examples=30)
def test_nothing_else_comes_out_when_no_gradients_are_wanted(isa: str, case: dict[str, Any]) -> None:
    made, start = tensors(case)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SUREFOOT_KERNEL", isa)
        learning = scan(made[0], made[1], start, *made[2:])
        with torch.no_grad():
            acting = scan(made[0], made[1], start, *made[2:])
    for one, other in zip(learning, acting, strict=True):
        assert not other.requires_grad
        assert torch.equal(one, other)


@pytest.mark.parametrize("isa", SETS)
@given(case=cases(), cut=st.integers(0, 19))
@settings(max_examples=60)
def test_a_start_cuts_what_is_carried_and_its_gradient_exactly(isa: str, case: dict[str, Any], cut: int) -> None:
    made, _ = tensors(case)
    inward, carry, weight, bias = made
    cut %= case["steps"]
    start = torch.zeros((case["steps"], case["streams"]), dtype=torch.bool)
    start[cut, 0] = True
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SUREFOOT_KERNEL", isa)
        hidden, carried = scan(inward, carry, start, weight, bias)
        d_inward, d_carry = torch.autograd.grad(hidden[cut:, 0].sum() + carried[0].sum(), (inward, carry))
        other = torch.cat([torch.full_like(inward[:cut], 3.0), inward[cut:]])
        again, _ = scan(other, carry + 1.0, start, weight, bias)
    assert not d_carry.any()
    assert not d_inward[:cut].any()
    assert d_inward[cut:, 0].any()
    assert not d_inward[:, 1:].any()
    assert torch.equal(hidden[cut:, 0], again[cut:, 0])


@given(case=cases(), isa=st.sampled_from(SETS or [""]))
@settings(max_examples=60)
def test_a_stream_does_not_notice_the_streams_beside_it(isa: str, case: dict[str, Any]) -> None:
    """To a few units in the last place: fused or not, a product of other shape may be added up in another order."""
    made, start = tensors(case)
    inward, carry, weight, bias = (x.detach() for x in made)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SUREFOOT_KERNEL", isa)
        hidden, carried = scan(inward, carry, start, weight, bias)
        alone, carried_alone = scan(inward[:, :1], carry[:1], None if start is None else start[:, :1], weight, bias)
    assert torch.allclose(hidden[:, :1], alone, atol=1e-6)
    assert torch.allclose(carried[:1], carried_alone, atol=1e-5)


@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_memory_gives_the_same_with_and_without_the_kernel(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    memory = Memory(kind, 5, 24, ortho_init=True)
    x, start = torch.randn(12, 3, 5), torch.rand(12, 3) < 0.2
    by_kernel = memory.forward(x, memory.empty(3), start)
    grads = torch.autograd.grad(by_kernel[0].square().sum(), list(memory.parameters()))
    monkeypatch.setattr(native, "kernel", None)
    by_torch = memory.forward(x, memory.empty(3), start)
    expected = torch.autograd.grad(by_torch[0].square().sum(), list(memory.parameters()))
    for one, other in zip((*by_kernel, *grads), (*by_torch, *expected), strict=True):
        assert torch.allclose(one, other, rtol=1e-4, atol=1e-5)
    assert by_kernel[0].grad_fn.__class__ is not by_torch[0].grad_fn.__class__


@pytest.mark.parametrize("isa", SETS)
@pytest.mark.parametrize("kind", ["gru", "lstm"])
@pytest.mark.parametrize(("inputs", "streams", "size"), [(1, 1, 1), (5, 3, 24), (64, 8, 64), (33, 17, 31), (7, 40, 16)])
def test_a_step_of_acting_is_a_step_of_learning(
    isa: str, kind: str, inputs: int, streams: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUREFOOT_KERNEL", isa)
    torch.manual_seed(0)
    memory = Memory(kind, inputs, size, ortho_init=True)
    torch.nn.init.normal_(memory.inward.bias)
    x, carry = torch.randn(4, streams, inputs), torch.randn(streams, memory.carried)
    start = torch.rand(4, streams) < 0.3
    hidden, carried = memory.forward(x, carry, start)
    now = carry
    with torch.no_grad():
        for t in range(4):
            h, now = memory.forward(x[t : t + 1], now, start[t : t + 1])
            assert h.shape == (1, streams, size)
            assert torch.allclose(h[0], hidden[t], atol=2e-6)
    assert torch.allclose(now, carried, atol=4e-6)


def test_other_types_no_rows_and_an_unknown_instruction_set_are_left_to_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    made, start = tensors({"kind": "gru", "steps": 2, "streams": 3, "size": 4, "starts": "some", "seed": 0})
    inward, carry, weight, bias = made
    assert can_scan(start, inward, carry, weight, bias)
    assert can_scan(None, inward, carry, weight, bias)
    assert not can_scan(start, inward.double(), carry, weight, bias)
    assert not can_scan(start, inward, carry, weight.bfloat16(), bias)
    assert not can_scan(None, inward[:, :0], carry[:0], weight, bias)
    assert not can_scan(start, inward.to("meta"), carry, weight, bias)
    monkeypatch.setenv("SUREFOOT_KERNEL", "abacus")
    assert not can_scan(start, inward, carry, weight, bias)


def test_tensors_that_are_not_contiguous_are_taken_as_they_read() -> None:
    made, start = tensors({"kind": "lstm", "steps": 5, "streams": 3, "size": 4, "starts": "some", "seed": 0})
    inward, carry, weight, bias = (x.detach() for x in made)
    assert start is not None
    expected, carried = scan(inward, carry, start, weight, bias)
    turned = [inward.transpose(0, 1).contiguous().transpose(0, 1), carry.t().contiguous().t()]
    again, carried_again = scan(*turned, start.t().contiguous().t(), weight.t().contiguous().t(), bias)
    assert torch.equal(expected, again)
    assert torch.equal(carried, carried_again)


def test_a_second_derivative_is_refused_rather_than_wrong() -> None:
    made, start = tensors({"kind": "gru", "steps": 2, "streams": 3, "size": 4, "starts": "none", "seed": 0})
    hidden, _ = scan(made[0], made[1], start, *made[2:])
    (grad,) = torch.autograd.grad(hidden.square().sum(), made[0], create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.sum().backward()
