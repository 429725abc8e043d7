"""The layers of GPT-2 and Llama with few operations: the same results as transformers, with less overhead.

Hidden states are [B·L, width] here, so that every linear layer is one matrix product.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from surefoot.lm.policy.adapters import Adapter

Mixed = tuple[Tensor, Tensor]


class Pass:
    """One pass over B rows of L tokens: their mask, their KV cache, and the rotation by position."""

    def __init__(self, size: tuple[int, int], mask: Tensor | None, cache: Any, turn: Mixed | None) -> None:
        self.size, self.mask, self.cache, self.turn = size, mask, cache, turn

    def heads(self, x: Tensor, count: int) -> Tensor:
        """Return [B·L, heads·D] as [B, heads, L, D]."""
        return x.view(*self.size, count, -1).transpose(1, 2)

    def turned(self, x: Tensor) -> Tensor:
        """Return queries or keys, rotated by their positions."""
        assert self.turn is not None
        cos, signed = self.turn
        return x * cos + x.roll(x.shape[-1] // 2, -1) * signed

    def attend(self, query: Tensor, key: Tensor, value: Tensor, layer: int) -> Tensor:
        """Return the output of attention, [B·L, width]."""
        if self.cache is not None:
            key, value = self.cache.update(key, value, layer)
        output = F.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=self.mask,
            # A single token attends to all keys of the cache.
            is_causal=self.mask is None and self.size[1] > 1,
            enable_gqa=query.shape[1] != key.shape[1],
        )
        return output.transpose(1, 2).reshape(self.size[0] * self.size[1], -1)


def linear(module: nn.Module, x: Tensor) -> Tensor:
    """Return a linear layer's output, [n, outputs], adapters included."""
    if isinstance(module, Adapter):
        out = linear(module.base, x)
        if not module.on:
            return out
        down = torch.mm(x, module.a.to(x.dtype).T)
        return torch.addmm(out, down, module.b.to(x.dtype).T, alpha=module.alpha / module.rank)
    if isinstance(module, nn.Linear):
        return F.linear(x, module.weight, module.bias)
    conv: Any = module  # transformers' Conv1D
    return torch.addmm(conv.bias, x, conv.weight)


class GPT2:
    """GPT-2: learned positions, layer norm before attention and MLP, all heads in one matrix."""

    def __init__(self, base: Any) -> None:
        self.base, self.blocks = base, list(base.h)
        self.depth, self.count = len(self.blocks), int(base.config.n_head)
        self.tanh = base.config.activation_function == "gelu_new"

    @staticmethod
    def fits(base: Any) -> bool:
        """Return False for variants of attention that are not implemented here."""
        config = base.config
        variant = config.scale_attn_by_inverse_layer_idx or config.reorder_and_upcast_attn or config.add_cross_attention
        return bool(config.scale_attn_weights) and not variant

    def embed(self, ids: Tensor, position: Tensor) -> Tensor:
        return (self.base.wte(ids) + self.base.wpe(position)).flatten(0, 1)

    def turn(self, x: Tensor, position: Tensor) -> None:
        return None

    def layer(self, x: Tensor, number: int, now: Pass) -> Tensor:
        block = self.blocks[number]
        mixed = linear(block.attn.c_attn, _layer_norm(block.ln_1, x))
        query, key, value = mixed.view(*now.size, 3, self.count, -1).permute(2, 0, 3, 1, 4).unbind(0)
        x = x + linear(block.attn.c_proj, now.attend(query, key, value, number))
        inner = linear(block.mlp.c_fc, _layer_norm(block.ln_2, x))
        return x + linear(block.mlp.c_proj, gelu_tanh(inner) if self.tanh else block.mlp.act(inner))

    def norm(self, x: Tensor) -> Tensor:
        return _layer_norm(self.base.ln_f, x)


class Llama:
    """Llama: rotary positions, RMS norm, a gated MLP; several heads may share keys and values."""

    def __init__(self, base: Any) -> None:
        self.base, self.blocks = base, list(base.layers)
        self.depth = len(self.blocks)
        self.count, self.shared = int(base.config.num_attention_heads), int(base.config.num_key_value_heads)

    @staticmethod
    def fits(base: Any) -> bool:
        """Return True for nearly every Llama: other differences are inside the modules."""
        return base.config.hidden_act in ("silu", "swish")

    def embed(self, ids: Tensor, position: Tensor) -> Tensor:
        return self.base.embed_tokens(ids).flatten(0, 1)

    def turn(self, x: Tensor, position: Tensor) -> Mixed:
        cos, sin = self.base.rotary_emb(x, position)
        half = sin.shape[-1] // 2
        # With the sign in the sine, a rotation is one roll, two products and a sum.
        signed = torch.cat([-sin[..., :half], sin[..., half:]], -1)
        return cos.unsqueeze(1), signed.unsqueeze(1)

    def layer(self, x: Tensor, number: int, now: Pass) -> Tensor:
        block = self.blocks[number]
        attention, mlp = block.self_attn, block.mlp
        normed = _rms_norm(block.input_layernorm, x)
        query = now.turned(now.heads(linear(attention.q_proj, normed), self.count))
        key = now.turned(now.heads(linear(attention.k_proj, normed), self.shared))
        value = now.heads(linear(attention.v_proj, normed), self.shared)
        x = x + linear(attention.o_proj, now.attend(query, key, value, number))
        normed = _rms_norm(block.post_attention_layernorm, x)
        return x + linear(mlp.down_proj, F.silu(linear(mlp.gate_proj, normed)) * linear(mlp.up_proj, normed))

    def norm(self, x: Tensor) -> Tensor:
        return _rms_norm(self.base.norm, x)


def _layer_norm(norm: nn.LayerNorm, x: Tensor) -> Tensor:
    return F.layer_norm(x, norm.normalized_shape, norm.weight, norm.bias, norm.eps)


def _rms_norm(norm: Any, x: Tensor) -> Tensor:
    # In float32 like transformers, so that the results agree.
    wide = x.float()
    scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + norm.variance_epsilon)
    return norm.weight * (wide * scale).to(x.dtype)


FAMILIES: dict[str, type[GPT2] | type[Llama]] = {"GPT2Model": GPT2, "LlamaModel": Llama}


class Direct:
    """Runs the layers of a model without the code that transformers has around them."""

    def __init__(self, family: GPT2 | Llama, first_trained: int) -> None:
        self.family, self.first_trained = family, first_trained

    @classmethod
    def of(cls, base: Any, first_trained: int) -> Direct | None:
        """Return the layers of `base`, or None for a family that is not written out here."""
        family = FAMILIES.get(type(base).__name__)
        return cls(family(base), first_trained) if family is not None and family.fits(base) else None

    def hidden(
        self,
        ids: Tensor,
        *,
        position: Tensor,
        mask: Tensor | None,
        cache: Any,
        trunk: Tensor | None,
        caught: list[Tensor] | None,
    ) -> Tensor:
        """As `Backbone.hidden`; the input of the first layer that learns is appended to `caught`."""
        family, size = self.family, (ids.shape[0], ids.shape[1])
        x = family.embed(ids, position) if trunk is None else trunk.flatten(0, 1)
        now = Pass(size, mask, cache, family.turn(x, position))
        for number in range(0 if trunk is None else self.first_trained, family.depth):
            if caught is not None and number == self.first_trained:
                caught.append(x.detach().view(*size, -1))
            x = family.layer(x, number, now)
        return family.norm(x).view(*size, -1)


# Up to this many numbers torch's one operation is faster than the five below, which are vectorised better.
FEW = 1 << 15
# √(2/π) and 0.044715 are the constants of the tanh approximation (Hendrycks and Gimpel 2016).
SLOPE = 2.0 * math.sqrt(2.0 / math.pi)
CUBE = 0.044715


class _Gelu(torch.autograd.Function):
    """x · σ(u) with u = SLOPE (x + CUBE x³), which is x/2 · (1 + tanh(u/2)). Saves the derivative instead of x."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        square = x.square()
        gate = square.mul(SLOPE * CUBE).add_(SLOPE).mul_(x).sigmoid_()
        out = x * gate
        if ctx.needs_input_grad[0]:
            # d/dx = σ + x σ (1 - σ) SLOPE (1 + 3 CUBE x²)
            steep = square.mul_(3.0 * SLOPE * CUBE).add_(SLOPE)
            ctx.save_for_backward(torch.addcmul(gate, steep.mul_(1.0 - gate), out))
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        (slope,) = ctx.saved_tensors
        return grads[0] * slope


def gelu_tanh(x: Tensor) -> Tensor:
    """Return torch's gelu(approximate="tanh"), up to rounding."""
    if x.dtype != torch.float32 or x.device.type != "cpu" or x.numel() <= FEW:
        return torch.nn.functional.gelu(x, approximate="tanh")
    return _Gelu.apply(x)  # pyright: ignore[reportReturnType]
