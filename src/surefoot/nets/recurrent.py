"""Memory: a GRU or an LSTM that is told where episodes begin. What it remembers is passed in and out, never kept."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from surefoot.nets.recurrent_kernel import can_scan, scan, step
from surefoot.nets.torsos import layer

GATES = {"gru": 3, "lstm": 4}


class Memory(nn.Module):
    """One recurrent layer over streams; orthogonal weights of gain 1 and zero biases (detail L1), nothing at first (L2).

    What a stream carries from step to step is one row: the hidden state, and behind it an LSTM's cell.
    """

    def __init__(self, kind: str, inputs: int, size: int, *, ortho_init: bool) -> None:
        super().__init__()
        self.kind, self.size = kind, size
        self.carried = 2 * size if kind == "lstm" else size
        """Width of what is carried."""
        self.by_kernel = True
        """False: torch alone, to the last digit what is written below."""
        self.inward = layer(inputs, GATES[kind] * size, gain=1.0, ortho_init=ortho_init)
        self.onward = layer(size, GATES[kind] * size, gain=1.0, ortho_init=ortho_init)

    def forward(self, x: Tensor, carry: Tensor, start: Tensor | None) -> tuple[Tensor, Tensor]:
        """[T, B, inputs] and what B streams carry → what they make of it [T, B, size], and what they carry on.

        Where `start` ([T, B] bool) is True an episode begins, with nothing carried (L3).
        """
        inner, onward = self.inward, self.onward
        weight, bias = onward.weight, onward.bias
        all_of_it = (x, inner.weight, inner.bias, carry, weight, bias)
        by_kernel = self.by_kernel and can_scan(start, *all_of_it)
        if by_kernel and len(x) == 1 and not torch.is_grad_enabled():
            return step(start, *all_of_it)
        inward = narrow_linear(x, inner.weight, inner.bias) if self.by_kernel else inner(x)
        if by_kernel and inward.dtype is torch.float32:  # under autocast it is not
            return scan(inward, carry, start, weight, bias)
        fresh = None if start is None or not bool(start.any()) else start
        return UNROLL[self.kind](inward, carry, fresh, weight, bias)

    def nothing(self, streams: int) -> Tensor:
        """What `streams` carry before their first step."""
        return torch.zeros((streams, self.carried), device=self.onward.weight.device)


def _lstm(inward: Tensor, carry: Tensor, start: Tensor | None, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """i, f, g, o = σ, σ, tanh, σ of (inward + h Wᵀ + b); c = f c + i g; h = o tanh(c)."""
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
    """r, z = σ, σ of (inward + h Wᵀ + b); n = tanh(inward + r (h Wᵀ + b)); h = (1 - z) n + z h."""
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


_NARROW = 16
"""Inputs up to which the gradient of a layer's weights is worked out the other way round."""


class _NarrowLinear(torch.autograd.Function):
    """x Wᵀ + b whose weight gradient is (xᵀ d)ᵀ: for a handful of inputs that product is nine times as fast as dᵀ x."""

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
    """[…, inputs] → […, outputs], as `nn.Linear` does it."""
    if weight.shape[1] > _NARROW or x.dtype != weight.dtype or not torch.is_grad_enabled():
        return nn.functional.linear(x, weight, bias)
    out: Any = _NarrowLinear.apply(x.reshape(-1, x.shape[-1]), weight, bias)
    return out.view(*x.shape[:-1], len(weight))
