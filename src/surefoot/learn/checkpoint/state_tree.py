"""State trees as JSON: arrays are stored apart and stay behind as references, {"$array": "rng.torch"}."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from surefoot.errors import CheckpointError

Tree = dict[str, Any]
"""A nested dict. Leaves: numpy arrays, torch tensors, None, bool, int of any size, float, str, and lists or tuples."""

_DTYPES = ("bool", *(f"{u}int{n}" for n in (8, 16, 32, 64) for u in ("", "u")), "float16", "float32", "float64")


def pack_tree(value: Any, label: str, arrays: dict[str, Any]) -> Any:
    """Return JSON for `value`; arrays go into `arrays` under their dotted path and leave a reference.

    The JSON holds the nesting, so dots in keys are harmless; two equal dotted paths are numbered.
    """
    if value is None or isinstance(value, bool | str):
        return value
    tag, array = _as_array(value, label)
    if array is not None:
        number, plain = 1, label.encode("utf-8", "replace").decode()
        name = plain
        while name in arrays or name == "__metadata__":  # reserved by safetensors
            number += 1
            name = f"{plain}#{number}"
        arrays[name] = array
        return {tag: name}
    if isinstance(value, int):
        # Beyond 64 bits other JSON readers round, and beyond 4,300 digits Python refuses to parse.
        return int(value) if abs(value) < 1 << 63 else {"$int": hex(value)}
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": str(value)}
    if isinstance(value, list | tuple):
        items = [_pack_entry(str(i), item, label, arrays)[1] for i, item in enumerate(cast("list[Any]", value))]
        return items if isinstance(value, list) else {"$tuple": items}
    if isinstance(value, Mapping):
        return dict(_pack_entry(key, item, label, arrays) for key, item in cast("Tree", value).items())
    raise CheckpointError(f"{label} is a {type(value).__name__}; a checkpoint can hold arrays, tensors and JSON values")


def _pack_entry(key: Any, value: Any, label: str, arrays: dict[str, Any]) -> tuple[str, Any]:
    if not isinstance(key, str):
        raise CheckpointError(f"{label} has the key {key!r}; keys must be strings, such as {str(key)!r}")
    return "$" + key if key.startswith("$") else key, pack_tree(value, f"{label}.{key}" if label else key, arrays)


def _as_array(value: Any, label: str) -> tuple[str, Any]:
    # Without importing torch: if nothing has loaded it, no value can be a tensor.
    torch = sys.modules.get("torch")
    tag = "$array"
    if torch is not None and isinstance(value, torch.Tensor):
        try:
            tensor = value.detach().cpu().contiguous()
            if tensor.dtype == torch.bfloat16:
                tag, tensor = "$bfloat16", tensor.view(torch.int16)
            value = tensor.numpy()
        except (TypeError, RuntimeError) as error:
            raise CheckpointError(f"{label} is a tensor that numpy cannot hold: {error}") from error
    if not isinstance(value, np.ndarray | np.generic):
        return tag, None
    array: np.ndarray[Any, np.dtype[Any]] = np.asarray(cast("Any", value))
    if array.dtype.name not in _DTYPES:
        raise CheckpointError(
            f"{label} has dtype {array.dtype}; a checkpoint can hold {', '.join(_DTYPES)} and bfloat16"
        )
    # Not np.ascontiguousarray, which turns a scalar's shape [] into [1].
    return tag, np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")


def unpack_tree(value: Any, arrays: dict[str, Any]) -> Any:
    """Return what `pack_tree` was given, and remove the arrays it refers to from `arrays`."""
    if isinstance(value, list):
        return [unpack_tree(item, arrays) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    tree = cast("Tree", value)
    if any(key.startswith("$") and not key.startswith("$$") for key in tree):
        ((tag, inner),) = tree.items()
        match tag:
            case "$array":
                return arrays.pop(inner)
            case "$bfloat16":
                import torch

                return torch.as_tensor(arrays.pop(inner)).view(torch.bfloat16)
            case "$int":
                return int(inner, 16)
            case "$float":
                return float(inner)
            case "$tuple":
                return tuple(unpack_tree(item, arrays) for item in inner)
            case _:
                raise ValueError(f"unknown tag {tag}")
    # A key that began with $ was written with a second one.
    return {key.removeprefix("$"): unpack_tree(item, arrays) for key, item in tree.items()}


def parse_json(raw: bytes) -> Tree:
    """Return the JSON object in `raw`. NaN and Infinity, which Python would accept, are not JSON and raise."""

    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is not JSON")

    return json.loads(raw.decode("ascii"), parse_constant=refuse)
