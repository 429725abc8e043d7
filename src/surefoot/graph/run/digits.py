"""The weights of a graph as one hash, to compare two engines to the last digit."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class HasWeights(Protocol):
    """A node with weights."""

    def state_dict(self) -> dict[str, Any]: ...


def weights_of(nodes: Mapping[str, Any]) -> dict[str, dict[str, np.ndarray]]:
    """Return {node: {name: array}} of all nodes with weights."""
    weights = {id: node.state_dict() for id, node in sorted(nodes.items()) if isinstance(node, HasWeights)}
    return {id: {name: np.asarray(x) for name, x in arrays.items()} for id, arrays in weights.items() if arrays}


def parameters_sha256(nodes: Mapping[str, Any]) -> str:
    """Return the hash of all weights of all nodes, with names, dtypes and shapes."""
    digest = hashlib.sha256()
    for id, arrays in sorted(weights_of(nodes).items()):
        for name, array in sorted(arrays.items()):
            digest.update(f"{id}.{name} {array.dtype} {list(array.shape)}\n".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
