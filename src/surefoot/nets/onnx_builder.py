"""A list of ONNX nodes and constants under construction; the package onnx is imported when first needed."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor

from surefoot.errors import ConfigError

BATCH = "batch"
"""The name of the first axis of every input and output: any number of rows."""


def optional_module(name: str) -> Any:
    """Import a module of the extra `onnx`; raise `ConfigError` with the install command if it is missing."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ConfigError(f'{name.partition(".")[0]} is not installed; run: pip install "surefoot[onnx]"') from None


@dataclass(frozen=True, slots=True)
class OnnxPort:
    """An input or output of the graph."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]


@dataclass(slots=True)
class Sheet:
    """Nodes, constants, inputs and outputs in the order they were added."""

    nodes: list[Any] = field(default_factory=list[Any])
    constants: dict[str, Any] = field(default_factory=dict[str, Any])
    inputs: list[OnnxPort] = field(default_factory=list[OnnxPort])
    outputs: list[OnnxPort] = field(default_factory=list[OnnxPort])

    def take(self, name: str, dtype: str, *shape: int | str) -> str:
        """Add an input of the graph and return its name."""
        self.inputs.append(OnnxPort(name, dtype, (BATCH, *shape)))
        return name

    def give(self, name: str, source: str, dtype: str, *shape: int | str) -> None:
        """Add an output of the graph."""
        self.outputs.append(OnnxPort(name, dtype, (BATCH, *shape)))
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
    """Return the module onnx.helper."""
    return optional_module("onnx.helper")
