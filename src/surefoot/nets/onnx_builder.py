"""A list of ONNX nodes and constants under construction; the package onnx is imported when first needed.

`splice` adds a module of the user's own, traced by torch.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from surefoot.data.spaces import ObservationSpace
from surefoot.errors import ConfigError, PolicyError

# Opset 17 is the first with all operators used here; runtimes support it since 2022 (onnxruntime 1.12).
OPSET, IR_VERSION = 17, 8
BATCH = "batch"
"""The name of the first axis of every input and output: any number of rows."""


def optional_module(name: str) -> Any:
    """Import a module of the extra `onnx`; raise `ConfigError` with the install command if it is missing."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ConfigError(f'{name.partition(".")[0]} is not installed; run: pip install "surefoot[onnx]"') from None


@dataclass(frozen=True, slots=True)
class ExportPort:
    """An input or output of an exported policy."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]


@dataclass(slots=True)
class Sheet:
    """Nodes, constants, inputs and outputs in the order they were added."""

    nodes: list[Any] = field(default_factory=list[Any])
    constants: dict[str, Any] = field(default_factory=dict[str, Any])
    inputs: list[ExportPort] = field(default_factory=list[ExportPort])
    outputs: list[ExportPort] = field(default_factory=list[ExportPort])

    def take(self, name: str, dtype: str, *shape: int | str) -> str:
        """Add an input of the graph and return its name."""
        self.inputs.append(ExportPort(name, dtype, (BATCH, *shape)))
        return name

    def give(self, name: str, source: str, dtype: str, *shape: int | str) -> None:
        """Add an output of the graph."""
        self.outputs.append(ExportPort(name, dtype, (BATCH, *shape)))
        self.nodes.append(onnx_helper().make_node("Identity", [source], [name]))

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node and return its only output."""
        return self.ops(kind, 1, *inputs, **attributes)[0]

    def ops(self, kind: str, count: int, *inputs: str, **attributes: Any) -> list[str]:
        names = [f"{kind.lower()}_{len(self.nodes)}" + (f"_{k}" if count > 1 else "") for k in range(count)]
        self.nodes.append(onnx_helper().make_node(kind, list(inputs), names, **attributes))
        return names

    def constant(self, value: Any, name: str | None = None) -> str:
        """Add an array and return its name; a torch parameter keeps its own."""
        array = value.detach().cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)
        array = np.ascontiguousarray(array.astype(np.float32) if array.dtype == np.float64 else array)
        name = name or f"constant_{len(self.constants)}"
        if name not in self.constants:
            self.constants[name] = optional_module("onnx.numpy_helper").from_array(array, name)
        return name

    def split(self, x: str, sizes: list[int]) -> list[str]:
        return [x] if len(sizes) == 1 else self.ops("Split", len(sizes), x, self.constant(np.array(sizes)), axis=1)

    def join(self, parts: list[str]) -> str:
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=1)

    def clip(self, x: str, low: Any, high: Any) -> str:
        """Clip by component; the operator `Clip` has one bound for all."""
        return self.op("Max", self.op("Min", x, self.constant(high)), self.constant(low))

    def reshape(self, x: str, *shape: int) -> str:
        return self.op("Reshape", x, self.constant(np.array([-1, *shape], np.int64)))


def onnx_helper() -> Any:
    return optional_module("onnx.helper")


class _ByPosition(nn.Module):
    """A module of a dict of parts, called with the parts in order: torch.onnx names inputs by position."""

    def __init__(self, module: nn.Module, names: list[str]) -> None:
        super().__init__()
        self.module, self.names = module, names

    def forward(self, *parts: Tensor) -> Tensor | tuple[Tensor, ...]:
        return self.module(dict(zip(self.names, parts, strict=True)))


def splice(
    sheet: Sheet, module: nn.Module, observation: ObservationSpace, parts: dict[str, str], outputs: int
) -> list[str]:
    """Add the nodes of `module` and return the names of its outputs; raise `PolicyError` if torch cannot export it.

    `parts` are the names of the observation's parts in the graph. The trace fixes Python's branches: the verification of the
    exported model finds a module that depends on them.
    """
    prefix = "own/"
    example = tuple(torch.zeros((2, *observation[n].shape), dtype=getattr(torch, observation[n].dtype)) for n in parts)
    names = [f"output_{k}" for k in range(outputs)]
    buffer: Any = io.BytesIO()
    try:
        # With gradients, because without them attention layers use an operator that ONNX does not have. On a failure torch
        # prints the graph.
        with warnings.catch_warnings(), torch.enable_grad(), contextlib.redirect_stdout(io.StringIO()):
            # Of tracing, which is what is wanted here: torch's other exporter needs the package onnxscript.
            warnings.simplefilter("ignore")
            torch.onnx.export(
                _ByPosition(module, list(parts)), example, buffer, dynamo=False, opset_version=OPSET,
                input_names=list(parts), output_names=names, dynamic_axes={n: {0: "batch"} for n in parts},
            )  # fmt: skip
    except Exception as why:  # whatever the user's module raises, and torch.onnx has no common class
        reason = next(iter(str(why).strip().splitlines()), "") or type(why).__name__
        raise PolicyError(f"torch.onnx cannot export {type(module).__name__}: {reason[:300]}") from why
    model = optional_module("onnx").load_from_string(buffer.getvalue())
    graph = optional_module("onnx.compose").add_prefix(model, prefix).graph
    for name, port in parts.items():
        sheet.nodes.append(onnx_helper().make_node("Identity", [port], [prefix + name]))
    sheet.nodes += graph.node
    sheet.constants |= {tensor.name: tensor for tensor in graph.initializer}
    return [prefix + name for name in names]
