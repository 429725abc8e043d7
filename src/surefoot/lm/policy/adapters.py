"""Low-rank adapters (LoRA, Hu et al. 2021): small trained matrices beside frozen ones, which can be switched off."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from surefoot.errors import ConfigError

# Attention layers of common model families; for GPT-2 and Llama the default of peft.
ATTENTION = ("c_attn", "q_proj", "v_proj", "query_key_value", "qkv_proj", "Wqkv")


class Adapter(nn.Module):
    """base(x) + alpha/rank · x Aᵀ Bᵀ. B is zero at the start, so that a new adapter changes nothing.

    A and B are always float32: steps of 1e-5 would be rounded away in bfloat16.
    """

    def __init__(self, base: nn.Module, *, rank: int, alpha: float, generator: torch.Generator) -> None:
        super().__init__()
        inner: Any = _innermost(base)
        # transformers' Conv1D stores its weight as [inputs, outputs].
        outputs, inputs = inner.weight.shape if isinstance(inner, nn.Linear) else inner.weight.shape[::-1]
        self.base, self.rank, self.alpha, self.on = base, rank, alpha, True
        self.settled = False
        """True once it belongs to the reference: trained in an earlier stage and never switched off again."""
        # Kaiming uniform with a = √5, as in peft.
        bound = 1.0 / math.sqrt(inputs)
        a = (torch.rand(rank, inputs, generator=generator) * 2 - 1) * bound
        device = next(base.parameters()).device
        self.a = nn.Parameter(a.to(device))
        self.b = nn.Parameter(torch.zeros(outputs, rank, device=device))

    def forward(self, x: Tensor) -> Tensor:
        out = self.base(x)
        if not self.on:
            return out
        down = nn.functional.linear(x, self.a.to(x.dtype))
        return out + nn.functional.linear(down, (self.b * (self.alpha / self.rank)).to(x.dtype))

    def delta(self) -> Tensor:
        """Return what it adds to the base's weight, in the layout of that weight."""
        added = (self.b @ self.a) * (self.alpha / self.rank)
        return added if isinstance(_innermost(self.base), nn.Linear) else added.T


def _innermost(module: nn.Module) -> nn.Module:
    """Return the linear layer below all adapters."""
    while isinstance(module, Adapter):
        module = module.base
    return module


def is_linear(module: nn.Module) -> bool:
    """Return True for modules that can have an adapter."""
    module = _innermost(module)
    return isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D"


def targets_in(layer: nn.Module, wanted: str | Sequence[str]) -> list[str]:
    """Return the paths of the modules in one layer that get adapters: "attention", "all", or names."""
    names = [name for name, module in layer.named_modules() if is_linear(module)]
    # Without the linear layer inside an adapter of an earlier stage.
    linear = [name for name in names if not any(name.startswith(f"{outer}.") for outer in names)]
    if wanted == "all":
        return linear
    names = ATTENTION if wanted == "attention" else (wanted,) if isinstance(wanted, str) else tuple(wanted)
    paths = [name for name in linear if name.rsplit(".", 1)[-1] in names]
    if not paths and wanted == "attention":
        # A family with other names: every linear layer of its attention module.
        paths = [name for name in linear if "att" in name.rpartition(".")[0].lower()]
    if not paths:
        available = sorted({name.rsplit(".", 1)[-1] for name in linear})
        raise ConfigError(f"no layer is called {' or '.join(names)}; this model has {', '.join(available)}")
    return paths


def adapt(layer: nn.Module, path: str, *, rank: int, alpha: float, generator: torch.Generator) -> Adapter:
    """Put an adapter around the module at `path`."""
    parent_path, _, name = path.rpartition(".")
    parent = layer.get_submodule(parent_path)
    adapter = Adapter(parent.get_submodule(name), rank=rank, alpha=alpha, generator=generator)
    setattr(parent, name, adapter)
    return adapter


def adapters_in(model: nn.Module) -> Iterator[tuple[str, Adapter]]:
    """Yield every adapter with its path, in the order of the model."""
    for name, module in model.named_modules():
        if isinstance(module, Adapter):
            yield name, module


def merge(model: nn.Module) -> None:
    """Add every adapter to its base weight and remove it; the output of the model stays the same."""
    names = [name for name, _ in adapters_in(model)]
    for name in names:
        if any(name.startswith(f"{other}.") for other in names):
            continue  # inside another adapter, which is merged with it
        adapter = model.get_submodule(name)
        base = _innermost(adapter)
        weight: Any = base.weight
        with torch.no_grad():
            # In float32, rounded once: adapters are smaller than bfloat16's steps.
            total = weight.float()
            while isinstance(adapter, Adapter):
                total, adapter = total + adapter.delta().float(), adapter.base
            weight.copy_(total.to(weight.dtype))
        parent_path, _, last = name.rpartition(".")
        setattr(model.get_submodule(parent_path), last, base)


def settle_adapters(model: nn.Module) -> None:
    """Make what was learned so far part of the reference; later adapters are added on top of it."""
    for _, adapter in adapters_in(model):
        adapter.settled = True
        adapter.requires_grad_(False)
