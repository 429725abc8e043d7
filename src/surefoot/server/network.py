"""A policy's network as numpy: a forward pass takes microseconds, and answering needs no torch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from surefoot.errors import NonFiniteValue, ShapeError


@dataclass(frozen=True, slots=True)
class _Layer:
    weight: np.ndarray
    """[in, out], contiguous: rows of inputs times it."""
    bias: np.ndarray
    gain: np.ndarray
    """LayerNorm's."""
    shift: np.ndarray


class Network:
    """embedding → 256 → 256 → 128 → logits, and a value beside it, from the weights of a version."""

    def __init__(self, weights: Mapping[str, np.ndarray], actions: int) -> None:
        self.policy = _tower(weights, "network.module.policy")
        self.value = _tower(weights, "network.module.value")
        self.size = int(self.policy[0][0].weight.shape[0])
        if self.policy[1].shape[1] != actions:
            raise ShapeError(f"the weights are for {self.policy[1].shape[1]} actions, the policy has {actions}")
        for name, x in weights.items():
            if not np.isfinite(x).all():
                raise NonFiniteValue(f"{name} holds NaN or infinity")

    def logits(self, rows: np.ndarray) -> np.ndarray:
        """[B, actions] for [B, size] float32."""
        return _through(self.policy, rows)

    def values(self, rows: np.ndarray) -> np.ndarray:
        """[B] for [B, size] float32."""
        return _through(self.value, rows)[:, 0]


Tower = tuple[list[_Layer], np.ndarray, np.ndarray]


def _tower(weights: Mapping[str, np.ndarray], name: str) -> Tower:
    layers: list[_Layer] = []
    place = 0
    while f"{name}.trunk.{place}.weight" in weights:
        linear, norm = f"{name}.trunk.{place}", f"{name}.trunk.{place + 1}"
        layers.append(
            _Layer(
                np.ascontiguousarray(weights[f"{linear}.weight"].T, np.float32),
                np.asarray(weights[f"{linear}.bias"], np.float32),
                np.asarray(weights[f"{norm}.weight"], np.float32),
                np.asarray(weights[f"{norm}.bias"], np.float32),
            )
        )
        place += 3
    out = np.ascontiguousarray(weights[f"{name}.out.weight"].T, np.float32)
    return layers, out, np.asarray(weights[f"{name}.out.bias"], np.float32)


def _through(tower: Tower, rows: np.ndarray) -> np.ndarray:
    layers, weight, bias = tower
    x = rows
    for layer in layers:
        x = x @ layer.weight
        x += layer.bias
        x -= x.mean(axis=1, keepdims=True)
        x *= 1.0 / np.sqrt(np.einsum("ij,ij->i", x, x)[:, None] / x.shape[1] + 1e-5)
        x *= layer.gain
        x += layer.shift
        np.maximum(x, 0.0, out=x)
    return x @ weight + bias


def probabilities(logits: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """[A] of [A] logits; what is not allowed has none."""
    if mask is not None:
        logits = np.where(mask, logits, -np.inf)
    spread = np.exp(logits - logits.max(), dtype=np.float64)
    return spread / spread.sum()


def draw(logits: np.ndarray, masks: Sequence[np.ndarray | None], numbers: np.ndarray) -> tuple[np.ndarray, list[int]]:
    """([B, A] probabilities, B actions), one for each uniform number in [0, 1); what is not allowed is never drawn."""
    if any(mask is not None for mask in masks):
        allowed = np.ones(logits.shape, bool)
        for row, mask in zip(allowed, masks, strict=True):
            if mask is not None:
                row[:] = mask
        logits = np.where(allowed, logits, -np.inf)
    chances = np.exp(logits - logits.max(axis=1, keepdims=True), dtype=np.float64)
    chances /= chances.sum(axis=1, keepdims=True)
    steps = chances.cumsum(axis=1)
    places = (steps <= numbers[:, None] * steps[:, -1:]).sum(axis=1).tolist()
    for row, place in enumerate(places):
        while place >= chances.shape[1] or chances[row, place] == 0.0:  # rounding at the end: the last possible one
            place -= 1
        places[row] = place
    return chances, places


def log(chance: float) -> float:
    """Its logarithm; what was chosen had some chance."""
    return math.log(max(chance, 1e-300))
