"""Log-probs of chosen tokens from hidden states, in pieces: the [tokens, vocabulary] table never exists."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

CHUNK = 1 << 23
"""Logits held at one time (32 MB in float32)."""
BLOCK, ROWS = 4096, 512
"""Tokens of the vocabulary and states that meet at one time on the short way (8 MB of logits)."""
FORBIDDEN = -1e30
"""Logit of a token that could not be sampled. Not -inf: 0 · inf is NaN."""


@dataclass(frozen=True, slots=True)
class Scores:
    """What was asked of n tokens; each is [n], float32."""

    log_prob: Tensor
    entropy: Tensor
    kl: Tensor | None = None
    """KL(policy ‖ reference) over the whole vocabulary, where a reference was given."""


def pack_support(allowed: Tensor) -> Tensor:
    """[n, V] bool as [n, ⌈V/8⌉] bytes."""
    n, size = allowed.shape
    padded = torch.nn.functional.pad(allowed, (0, -size % 8)).view(n, -1, 8).to(torch.uint8)
    return (padded << torch.arange(8, dtype=torch.uint8, device=allowed.device)).sum(-1, dtype=torch.uint8)


def unpack_support(packed: Tensor, size: int) -> Tensor:
    """The inverse of `pack_support`."""
    bits = (packed.unsqueeze(-1) >> torch.arange(8, dtype=torch.uint8, device=packed.device)) & 1
    return bits.flatten(1)[:, :size].bool()


def logits_of(hidden: Tensor, head: Any, *, temperature: float, support: Tensor | None) -> Tensor:
    """[n, V] float32 logits of the distribution that is sampled from: tempered, and only what was allowed."""
    logits = torch.nn.functional.linear(hidden, head.weight, head.bias).float()
    if temperature != 1.0:
        logits = logits / temperature
    if support is not None:
        logits = logits.masked_fill(~unpack_support(support, logits.shape[-1]), FORBIDDEN)
    return logits


def score(
    hidden: Tensor,
    head: Any,
    token: Tensor,
    *,
    temperature: float = 1.0,
    support: Tensor | None = None,
    reference: Tensor | None = None,
    reference_head: Any = None,
    entropy_gradient: bool = False,
) -> Scores:
    """Log-prob of `token` [n] given `hidden` [n, width], the entropy, and the exact KL to a reference's states.

    A head that does not learn takes the short way: d log p / d h = W[token] - softmax(Wh) W does not depend on the loss,
    so it is worked out in the same visit and neither kept logits nor a second softmax are needed.
    """
    plain = reference is None and not entropy_gradient and head.bias is None
    if plain and not torch.is_grad_enabled():
        made = _visits(hidden, head.weight, token, temperature, support, gradient=False)
        return Scores(made.log_prob, made.entropy)
    if plain and hidden.requires_grad and not head.weight.requires_grad:
        log_prob, entropy = _Frozen.apply(hidden, head.weight, token, temperature, support)  # pyright: ignore
        return Scores(log_prob, entropy)
    rows = max(1, CHUNK // head.weight.shape[0])

    def part(h: Tensor, t: Tensor, s: Tensor | None, r: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        log_p = logits_of(h, head, temperature=temperature, support=s).log_softmax(-1)
        p = log_p.exp()
        entropy = -(p * log_p).sum(-1)
        kl = torch.zeros_like(entropy)
        if r is not None:
            log_q = logits_of(r, reference_head or head, temperature=temperature, support=s).log_softmax(-1)
            kl = (p * (log_p - log_q)).sum(-1)
        return log_p.gather(-1, t.unsqueeze(-1)).squeeze(-1), entropy, kl

    found = [_kept_small(part, hidden, token, support, reference, slice(i, i + rows)) for i in _begins(hidden, rows)]
    log_prob, entropy, kl = (torch.cat(each) for each in zip(*found, strict=True))
    return Scores(log_prob, entropy if entropy_gradient else entropy.detach(), None if reference is None else kl)


def _begins(hidden: Tensor, rows: int) -> range:
    return range(0, max(1, len(hidden)), rows)


def _kept_small(
    part: Callable[..., tuple[Tensor, Tensor, Tensor]],
    hidden: Tensor,
    token: Tensor,
    support: Tensor | None,
    reference: Tensor | None,
    rows: slice,
) -> tuple[Tensor, Tensor, Tensor]:
    """One chunk; where gradients flow its logits are computed again rather than kept."""
    given = (hidden[rows], token[rows], *(None if x is None else x[rows] for x in (support, reference)))
    if torch.is_grad_enabled():
        return checkpoint(part, *given, use_reentrant=False)  # pyright: ignore[reportReturnType]
    return part(*given)


@dataclass(frozen=True, slots=True)
class _Visit:
    """One walk over the vocabulary for n tokens, block by block, with a running maximum (as flash attention has)."""

    log_prob: Tensor
    entropy: Tensor
    gradient: Tensor | None
    """[n, width]: d log p / d h, where it was wanted."""


def _visit(
    hidden: Tensor, weight: Tensor, token: Tensor, temperature: float, support: Tensor | None, *, gradient: bool
) -> _Visit:
    """All rows meet one block of the vocabulary after the other, so that a block's logits stay in the CPU's cache."""
    n = len(hidden)
    top = hidden.new_full((n, 1), float("-inf"), dtype=torch.float32)
    total, dot, chosen = torch.zeros_like(top), torch.zeros_like(top), torch.zeros_like(top)
    pulled = torch.zeros(n, hidden.shape[1], dtype=torch.float32, device=hidden.device) if gradient else None
    for begin in range(0, len(weight), BLOCK):
        block = weight[begin : begin + BLOCK]
        logits = torch.nn.functional.linear(hidden, block).float()
        if temperature != 1.0:
            logits.div_(temperature)
        if support is not None:
            bits = support[:, begin // 8 : (begin + BLOCK) // 8]
            logits.masked_fill_(~unpack_support(bits, len(block)), FORBIDDEN)
        place = token.unsqueeze(-1) - begin
        here = (place >= 0) & (place < len(block))
        chosen = torch.where(here, logits.gather(-1, place.clamp(0, len(block) - 1)), chosen)
        before, top = top, torch.maximum(top, logits.amax(-1, keepdim=True))
        shrunk, weighed = (before - top).exp_(), (logits - top).exp_()
        total = total * shrunk + weighed.sum(-1, keepdim=True)
        dot = dot * shrunk + torch.linalg.vecdot(weighed, logits).unsqueeze(-1)
        if pulled is not None:
            pulled = pulled.mul_(shrunk).add_(torch.mm(weighed.to(block.dtype), block))
    normaliser = top + total.log()
    found = None if pulled is None else weight[token] - (pulled / total).to(weight.dtype)
    return _Visit((chosen - normaliser).squeeze(-1), (normaliser - dot / total).squeeze(-1), found)


def _visits(
    hidden: Tensor, weight: Tensor, token: Tensor, temperature: float, support: Tensor | None, *, gradient: bool
) -> _Visit:
    """The same for any number of rows, a few hundred at a time."""
    parts = [
        _visit(hidden[at], weight, token[at], temperature, None if support is None else support[at], gradient=gradient)
        for at in (slice(i, i + ROWS) for i in _begins(hidden, ROWS))
    ]
    gradients = [part.gradient for part in parts if part.gradient is not None]
    log_prob, entropy = torch.cat([part.log_prob for part in parts]), torch.cat([part.entropy for part in parts])
    return _Visit(log_prob, entropy, torch.cat(gradients) if gradients else None)


class _Frozen(torch.autograd.Function):
    """Log-probs and entropies under a head that does not learn; only the log-probs have a gradient."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, token: Tensor, temperature: float, support: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        made = _visits(hidden, weight, token, temperature, support, gradient=True)
        ctx.save_for_backward(made.gradient)
        ctx.temperature = temperature
        ctx.mark_non_differentiable(made.entropy)
        return made.log_prob, made.entropy

    @staticmethod
    def backward(ctx: Any, *given: Tensor) -> Any:
        (gradient,) = ctx.saved_tensors
        pulled = (given[0] / ctx.temperature).unsqueeze(-1).to(gradient.dtype) * gradient
        return pulled, None, None, None, None
