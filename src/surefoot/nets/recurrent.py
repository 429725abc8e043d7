"""Memory: a GRU or an LSTM that resets at episode starts. Its state is passed in and out, never stored in the module.

`_gru` and `_lstm` are the definition; the kernel runs the loop over time if it can (`scan`, `step`).
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from surefoot import native
from surefoot.nets.torsos import layer

GATES = {"gru": 3, "lstm": 4}


class Memory(nn.Module):
    """One recurrent layer; orthogonal weights of gain 1, zero biases (detail L1), and a zero initial state (L2).

    The state of a stream is one row: the hidden state, followed by the cell of an LSTM.
    """

    def __init__(self, kind: str, inputs: int, size: int, *, ortho_init: bool) -> None:
        super().__init__()
        self.kind, self.size = kind, size
        self.carried = 2 * size if kind == "lstm" else size
        """Width of the state."""
        self.by_kernel = True
        """False: use torch only, bit-exact with the definitions below."""
        self.inward = layer(inputs, GATES[kind] * size, gain=1.0, ortho_init=ortho_init)
        self.onward = layer(size, GATES[kind] * size, gain=1.0, ortho_init=ortho_init)

    def forward(self, x: Tensor, carry: Tensor, start: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return hidden states [T, B, size] and the new state, from inputs [T, B, inputs] and the state of B streams.

        The state is zero where `start` ([T, B] bool) is True: an episode begins there (L3).
        """
        inner, onward = self.inward, self.onward
        weight, bias = onward.weight, onward.bias
        tensors = (x, inner.weight, inner.bias, carry, weight, bias)
        by_kernel = self.by_kernel and can_scan(start, *tensors)
        if by_kernel and len(x) == 1 and not torch.is_grad_enabled():
            return step(start, *tensors)
        inward = narrow_linear(x, inner.weight, inner.bias) if self.by_kernel else inner(x)
        if by_kernel and inward.dtype is torch.float32:  # under autocast it is not
            return scan(inward, carry, start, weight, bias)
        fresh = None if start is None or not bool(start.any()) else start
        return UNROLL[self.kind](inward, carry, fresh, weight, bias)

    def empty(self, streams: int) -> Tensor:
        """Return the state of `streams` before their first step."""
        return torch.zeros((streams, self.carried), device=self.onward.weight.device)


def _lstm(inward: Tensor, carry: Tensor, start: Tensor | None, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Compute i, f, g, o = σ, σ, tanh, σ of (inward + h Wᵀ + b); c = f c + i g; h = o tanh(c)."""
    h, c = carry.chunk(2, dim=-1)
    hidden: list[Tensor] = []
    for t, x in enumerate(inward):
        if start is not None:
            keep = ~start[t].unsqueeze(-1)
            h, c = h * keep, c * keep
        i, f, g, o = torch.addmm(x + bias, h, weight.t()).chunk(4, dim=-1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        hidden.append(h)
    return torch.stack(hidden), torch.cat([h, c], dim=-1)


def _gru(inward: Tensor, carry: Tensor, start: Tensor | None, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Compute r, z = σ, σ of (inward + h Wᵀ + b); n = tanh(inward + r (h Wᵀ + b)); h = (1 - z) n + z h."""
    h = carry
    size = h.shape[-1]
    hidden: list[Tensor] = []
    for t, x in enumerate(inward):
        if start is not None:
            h = h * ~start[t].unsqueeze(-1)
        back = torch.addmm(bias, h, weight.t())
        r, z = (x[:, : 2 * size] + back[:, : 2 * size]).sigmoid().chunk(2, dim=-1)
        n = (x[:, 2 * size :] + r * back[:, 2 * size :]).tanh()
        h = n + z * (h - n)
        hidden.append(h)
    return torch.stack(hidden), h


UNROLL = {"gru": _gru, "lstm": _lstm}

# Up to this many inputs `_NarrowLinear` is faster than nn.Linear.
_NARROW = 16


class _NarrowLinear(torch.autograd.Function):
    """x Wᵀ + b with the weight gradient as (xᵀ d)ᵀ: for few inputs that product is nine times as fast as dᵀ x."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return torch.addmm(bias, x, weight.t())

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        (d,), (x, weight) = grads, ctx.saved_tensors
        d_x = d @ weight if ctx.needs_input_grad[0] else None
        return d_x, (x.t() @ d).t().contiguous(), d.sum(0)


def narrow_linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return x Wᵀ + b, […, inputs] → […, outputs]."""
    if weight.shape[1] > _NARROW or x.dtype != weight.dtype or not torch.is_grad_enabled():
        return nn.functional.linear(x, weight, bias)
    out: Any = _NarrowLinear.apply(x.reshape(-1, x.shape[-1]), weight, bias)
    return out.view(*x.shape[:-1], len(weight))


Array = np.ndarray[Any, Any]


def can_scan(start: Tensor | None, *tensors: Tensor) -> bool:
    """Return whether the kernel can process these tensors: float32 on the CPU, at least one step of one stream."""
    if native.kernel is None or not _available(_instruction_set()):
        return False
    plain = all(x.dtype is torch.float32 and x.is_cpu for x in tensors) and tensors[0].numel() > 0
    return plain and (start is None or (start.dtype is torch.bool and start.is_cpu))


def scan(inward: Tensor, carry: Tensor, start: Tensor | None, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Return hidden states [T, B, size] and the new state, from x W + b of the inputs, [T, B, gates · size].

    Four gates are an LSTM, three a GRU. Call `can_scan` first.
    """
    tensors = (inward.contiguous(), carry.contiguous(), weight.contiguous(), bias.contiguous())
    fresh = None if start is None else start.contiguous()
    if torch.is_grad_enabled() and any(x.requires_grad for x in tensors):
        hidden, carried = _Scan.apply(fresh, *tensors)  # pyright: ignore[reportGeneralTypeIssues]  # untyped in torch
        return hidden, carried
    return _forward(fresh, tensors, None, None)


def step(start: Tensor | None, *tensors: Tensor) -> tuple[Tensor, Tensor]:
    """Return one step for acting, from (x [1, B, inputs], its weight and bias, the state, the memory's weight and bias).

    It computes no gradients. Call `can_scan` first.
    """
    kernel = native.kernel
    assert kernel is not None
    x, weight_in, bias_in, carry, weight, bias = [t.contiguous().numpy() for t in tensors]
    _, streams, inputs = x.shape
    hidden, carried = np.empty((1, streams, weight.shape[1]), np.float32), np.empty(carry.shape, np.float32)
    kernel.scan_step(
        **_shape(start, weight, streams),
        inputs=inputs,
        x=x,
        weight_in=weight_in,
        bias_in=bias_in,
        carry=carry,
        weight=weight,
        bias=bias,
        hidden=hidden,
        carried=carried,
    )
    return torch.from_numpy(hidden), torch.from_numpy(carried)


@cache
def _available(instruction_set: str) -> bool:
    kernel = native.kernel
    return kernel is not None and instruction_set in ("auto", *kernel.instruction_sets())


def _instruction_set() -> str:
    return os.environ.get("SUREFOOT_KERNEL", "auto")


def _shape(start: Tensor | None, weight: Array, streams: int) -> dict[str, Any]:
    """Return the arguments that all three kernel functions share."""
    width, size = weight.shape
    return {
        "instruction_set": _instruction_set(),
        "gates_per_unit": width // size,
        "streams": streams,
        "size": size,
        "start": None if start is None else start.contiguous().numpy(),
    }


def _forward(
    start: Tensor | None, tensors: tuple[Tensor, Tensor, Tensor, Tensor], gates: Array | None, saved: Array | None
) -> tuple[Tensor, Tensor]:
    kernel = native.kernel
    assert kernel is not None
    inward, carry, weight, bias = (x.detach().numpy() for x in tensors)
    steps, streams, _ = inward.shape
    hidden, carried = np.empty((steps, streams, weight.shape[1]), np.float32), np.empty(carry.shape, np.float32)
    kernel.scan_forward(
        **_shape(start, weight, streams),
        steps=steps,
        inward=inward,
        carry=carry,
        weight=weight,
        bias=bias,
        hidden=hidden,
        carried=carried,
        gates=gates,
        saved=saved,
    )
    return torch.from_numpy(hidden), torch.from_numpy(carried)


class _Scan(torch.autograd.Function):
    """Forward saves the gates and other intermediates; the gradients of the weights are one product over all steps."""

    @staticmethod
    def forward(
        ctx: Any, start: Tensor | None, inward: Tensor, carry: Tensor, weight: Tensor, bias: Tensor
    ) -> tuple[Tensor, Tensor]:
        gates = np.empty(inward.shape, np.float32)
        saved = np.empty((*inward.shape[:2], weight.shape[1]), np.float32)
        hidden, carried = _forward(start, (inward, carry, weight, bias), gates, saved)
        ctx.gates, ctx.saved = gates, saved
        ctx.save_for_backward(carry, weight, hidden, start)
        ctx.set_materialize_grads(False)
        return hidden, carried

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]  # the decorator loses the name
        ctx: Any, *grads: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        kernel = native.kernel
        assert kernel is not None
        *tensors, start = ctx.saved_tensors
        carry, weight, hidden = (x.detach().numpy() for x in tensors)
        gates = ctx.gates
        d_hidden, d_carried = (None if g is None else g.contiguous().numpy() for g in grads)
        d_inward, before, d_carry = np.empty_like(gates), np.empty_like(hidden), np.empty_like(carry)
        steps, streams, width = gates.shape
        d_onward = None if width == 4 * weight.shape[1] else np.empty_like(gates)
        kernel.scan_backward(
            **_shape(start, weight, streams),
            steps=steps,
            carry=carry,
            weight=weight,
            hidden=hidden,
            gates=gates,
            saved=ctx.saved,
            d_hidden=d_hidden,
            d_carried=d_carried,
            d_inward=d_inward,
            d_onward=d_onward,
            before=before,
            d_carry=d_carry,
        )
        rows = torch.from_numpy(d_inward if d_onward is None else d_onward).flatten(0, 1)
        d_weight = rows.t() @ torch.from_numpy(before).flatten(0, 1)
        return None, torch.from_numpy(d_inward), torch.from_numpy(d_carry), d_weight, rows.sum(0)
