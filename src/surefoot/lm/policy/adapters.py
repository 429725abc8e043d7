"""Low-rank adapters (Hu et al. 2021): small trained matrices beside frozen ones, which can be switched off."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from surefoot.errors import ConfigError

ATTENTION = ("c_attn", "q_proj", "v_proj", "query_key_value", "qkv_proj", "Wqkv")
"""What is adapted unless told otherwise; for GPT-2 and Llama the same as peft's own default."""


class Adapter(nn.Module):
    """base(x) + alpha/rank · x Aᵀ Bᵀ. B begins at zero, so that nothing changes before something was learned.

    A and B are float32 whatever the base is: steps of 1e-5 would be rounded away in bfloat16.
    """

    def __init__(self, base: nn.Module, *, rank: int, alpha: float, generator: torch.Generator) -> None:
        super().__init__()
        outputs, inputs = _shape(base)
        self.base, self.rank, self.alpha, self.on = base, rank, alpha, True
        self.settled = False
        """True once it belongs to the reference: learned in an earlier stage, never switched off again."""
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
        """What it adds to the base's weight, laid out as that weight is."""
        added = (self.b @ self.a) * (self.alpha / self.rank)
        return added if isinstance(_innermost(self.base), nn.Linear) else added.T


def _innermost(module: nn.Module) -> nn.Module:
    """The linear layer below all adapters."""
    while isinstance(module, Adapter):
        module = module.base
    return module


def _shape(base: nn.Module) -> tuple[int, int]:
    """(outputs, inputs) of a linear layer; transformers' Conv1D keeps its weight the other way round."""
    base = _innermost(base)
    weight: Any = base.weight
    rows, columns = (int(n) for n in weight.shape)
    return (rows, columns) if isinstance(base, nn.Linear) else (columns, rows)


def is_linear(module: nn.Module) -> bool:
    """True for what can be adapted."""
    module = _innermost(module)
    return isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D"


def targets_in(layer: nn.Module, wanted: str | Sequence[str]) -> list[str]:
    """Paths of the modules in one layer that are to be adapted: "attention", "all", or names."""
    found = [name for name, module in layer.named_modules() if is_linear(module)]
    linear = [
        name for name in found if not any(name.startswith(f"{outer}.") for outer in found)
    ]  # not what is inside one
    if wanted == "all":
        return linear
    names = ATTENTION if wanted == "attention" else (wanted,) if isinstance(wanted, str) else tuple(wanted)
    found = [name for name in linear if name.rsplit(".", 1)[-1] in names]
    if not found:
        there = sorted({name.rsplit(".", 1)[-1] for name in linear})
        raise ConfigError(f"no layer is called {' or '.join(names)}; this model has {', '.join(there)}")
    return found


def adapt(layer: nn.Module, path: str, *, rank: int, alpha: float, generator: torch.Generator) -> Adapter:
    """Put an adapter around the module at `path`."""
    parent_path, _, name = path.rpartition(".")
    parent = layer.get_submodule(parent_path)
    adapter = Adapter(parent.get_submodule(name), rank=rank, alpha=alpha, generator=generator)
    setattr(parent, name, adapter)
    return adapter


def adapters_in(model: nn.Module) -> Iterator[tuple[str, Adapter]]:
    """Every adapter with its path, in the model's order."""
    for name, module in model.named_modules():
        if isinstance(module, Adapter):
            yield name, module


def merge(model: nn.Module) -> None:
    """Add every adapter to the weight beside it and take it away; what the model computes stays the same."""
    found = list(adapters_in(model))
    outermost = [name for name, _ in found if not any(name.startswith(f"{other}.") for other, _ in found)]
    for name in outermost:
        adapter = model.get_submodule(name)
        base = _innermost(adapter)
        weight: Any = base.weight
        with torch.no_grad():
            total = weight.float()
            while isinstance(adapter, Adapter):
                total, adapter = total + adapter.delta().float(), adapter.base
            weight.copy_(total.to(weight.dtype))
        parent_path, _, last = name.rpartition(".")
        setattr(model.get_submodule(parent_path), last, base)


def settle_adapters(model: nn.Module) -> None:
    """What was learned so far becomes part of the reference; adapters added later go on top of it."""
    for _, adapter in adapters_in(model):
        adapter.settled = True
        adapter.requires_grad_(False)
