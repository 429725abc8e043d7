"""Log-probs of tokens from hidden states, in pieces: the [tokens, vocabulary] logits are never held all together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

# Logits held at one time: 32 MB in float32.
CHUNK = 1 << 23
# Vocabulary entries and states per step of `_visit`: 8 MB of logits, which stay in the cache of the CPU.
BLOCK, ROWS = 4096, 512
# Logit of a token that could not be sampled. Not -inf: 0 · inf is NaN.
FORBIDDEN = -1e30


@dataclass(frozen=True, slots=True)
class VocabularyHead:
    """The output layer of a model: logits = cap · tanh(z / cap) with z = scale · (W h + b); no cap: z."""

    weight: Tensor
    bias: Tensor | None = None
    scale: float = 1.0
    cap: float | None = None

    def __call__(self, hidden: Tensor) -> Tensor:
        """Return the logits, [..., V] float32."""
        logits = torch.nn.functional.linear(hidden, self.weight, self.bias).float()
        if self.scale != 1.0:
            logits = logits * self.scale
        return logits if self.cap is None else self.cap * torch.tanh(logits / self.cap)


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores of n tokens, [n] float32 each."""

    log_prob: Tensor
    entropy: Tensor
    kl: Tensor | None = None
    """KL(policy ‖ reference) over the vocabulary, if a reference was passed."""


def pack_support(allowed: Tensor) -> Tensor:
    """Return [n, V] bool as bits, [n, ⌈V/8⌉] bytes."""
    n, size = allowed.shape
    padded = torch.nn.functional.pad(allowed, (0, -size % 8)).view(n, -1, 8).to(torch.uint8)
    return (padded << torch.arange(8, dtype=torch.uint8, device=allowed.device)).sum(-1, dtype=torch.uint8)


def unpack_support(packed: Tensor, size: int) -> Tensor:
    """Return the [n, V] bool that `pack_support` was given."""
    bits = (packed.unsqueeze(-1) >> torch.arange(8, dtype=torch.uint8, device=packed.device)) & 1
    return bits.flatten(1)[:, :size].bool()


def logits_of(hidden: Tensor, head: Any, *, temperature: float, support: Tensor | None) -> Tensor:
    """Return the logits of the sampling distribution, [n, V] float32: at its temperature, allowed tokens only."""
    logits = head(hidden).float()
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
    """Return the log-prob of `token` [n] for `hidden` [n, width], the entropy, and the exact KL to a reference.

    If the head is frozen there is a faster way: d log p / d h = W[token] - softmax(Wh) W (at temperature 1) does not depend
    on the loss, so the gradient is computed in the forward pass, without stored logits or a second softmax.
    """
    # The blockwise path computes neither the gradient of the entropy nor a KL, a bias or a soft cap.
    capped = isinstance(head, VocabularyHead) and head.cap is not None
    plain = reference is None and not entropy_gradient and head.bias is None and not capped
    if plain and isinstance(head, VocabularyHead) and head.scale != 1.0:
        hidden, head = hidden * head.scale, VocabularyHead(head.weight)
    if plain and not torch.is_grad_enabled():
        visit = _visits(hidden, head.weight, token, temperature, support, gradient=False)
        return Scores(visit.log_prob, visit.entropy)
    if plain and hidden.requires_grad and not head.weight.requires_grad:
        log_prob, entropy = _Frozen.apply(hidden, head.weight, token, temperature, support)  # pyright: ignore
        return Scores(log_prob, entropy)
    rows = max(1, CHUNK // head.weight.shape[0])

    def part(h: Any, t: Any, s: Tensor | None, r: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        log_p = logits_of(h, head, temperature=temperature, support=s).log_softmax(-1)
        p = log_p.exp()
        entropy = -(p * log_p).sum(-1)
        kl = torch.zeros_like(entropy)
        if r is not None:
            log_q = logits_of(r, reference_head or head, temperature=temperature, support=s).log_softmax(-1)
            kl = (p * (log_p - log_q)).sum(-1)
        return log_p.gather(-1, t.unsqueeze(-1)).squeeze(-1), entropy, kl

    chunks: list[tuple[Tensor, Tensor, Tensor]] = []
    for begin in _begins(hidden, rows):
        inputs = [None if x is None else x[begin : begin + rows] for x in (hidden, token, support, reference)]
        # With gradients the logits are computed again in the backward pass instead of being stored.
        result: Any = checkpoint(part, *inputs, use_reentrant=False) if torch.is_grad_enabled() else part(*inputs)
        chunks.append(result)
    log_prob, entropy, kl = (torch.cat(each) for each in zip(*chunks, strict=True))
    return Scores(log_prob, entropy if entropy_gradient else entropy.detach(), None if reference is None else kl)


def _begins(hidden: Tensor, rows: int) -> range:
    return range(0, max(1, len(hidden)), rows)


@dataclass(frozen=True, slots=True)
class _Visit:
    """Results for n tokens of one pass over the vocabulary in blocks, with a running maximum (as in flash attention)."""

    log_prob: Tensor
    entropy: Tensor
    gradient: Tensor | None
    """[n, width]: d log p / d h, if requested."""


def _visit(
    hidden: Tensor, weight: Tensor, token: Tensor, temperature: float, support: Tensor | None, *, gradient: bool
) -> _Visit:
    """Pass over the vocabulary in blocks for all rows, so that a block's logits stay in the cache of the CPU."""
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
        index = token.unsqueeze(-1) - begin
        inside = (index >= 0) & (index < len(block))
        chosen = torch.where(inside, logits.gather(-1, index.clamp(0, len(block) - 1)), chosen)
        before, top = top, torch.maximum(top, logits.amax(-1, keepdim=True))
        # Sums so far were relative to the old maximum.
        shrunk, weighed = (before - top).exp_(), (logits - top).exp_()
        total = total * shrunk + weighed.sum(-1, keepdim=True)
        dot = dot * shrunk + torch.linalg.vecdot(weighed, logits).unsqueeze(-1)
        if pulled is not None:
            pulled = pulled.mul_(shrunk).add_(torch.mm(weighed.to(block.dtype), block))
    normaliser = top + total.log()
    slope = None if pulled is None else weight[token] - (pulled / total).to(weight.dtype)
    return _Visit((chosen - normaliser).squeeze(-1), (normaliser - dot / total).squeeze(-1), slope)


def _visits(
    hidden: Tensor, weight: Tensor, token: Tensor, temperature: float, support: Tensor | None, *, gradient: bool
) -> _Visit:
    """Return `_visit` of any number of rows, `ROWS` at a time."""
    parts = [
        _visit(hidden[i], weight, token[i], temperature, None if support is None else support[i], gradient=gradient)
        for i in (slice(i, i + ROWS) for i in _begins(hidden, ROWS))
    ]
    gradients = [part.gradient for part in parts if part.gradient is not None]
    log_prob, entropy = torch.cat([part.log_prob for part in parts]), torch.cat([part.entropy for part in parts])
    return _Visit(log_prob, entropy, torch.cat(gradients) if gradients else None)


class _Frozen(torch.autograd.Function):
    """Log-probs and entropies under a frozen head; only the log-probs have a gradient."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, token: Tensor, temperature: float, support: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        visit = _visits(hidden, weight, token, temperature, support, gradient=True)
        ctx.save_for_backward(visit.gradient)
        ctx.temperature = temperature
        ctx.mark_non_differentiable(visit.entropy)
        return visit.log_prob, visit.entropy

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        (gradient,) = ctx.saved_tensors
        pulled = (grads[0] / ctx.temperature).unsqueeze(-1).to(gradient.dtype) * gradient
        return pulled, None, None, None, None
