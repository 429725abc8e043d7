"""What a graph has learned, as one number that two engines can compare."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class HasWeights(Protocol):
    """A node that has weights."""

    def state_dict(self) -> dict[str, Any]: ...


def learned(nodes: Mapping[str, Any]) -> dict[str, dict[str, np.ndarray]]:
    """{node: {name: array}} of all nodes with weights."""
    found = {id: node.state_dict() for id, node in sorted(nodes.items()) if isinstance(node, HasWeights)}
    return {id: {name: np.asarray(x) for name, x in weights.items()} for id, weights in found.items() if weights}


def parameters_sha256(nodes: Mapping[str, Any]) -> str:
    """Of every weight of every node, names and shapes included."""
    digest = hashlib.sha256()
    for id, weights in sorted(learned(nodes).items()):
        for name, array in sorted(weights.items()):
            digest.update(f"{id}.{name} {array.dtype} {list(array.shape)}\n".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
