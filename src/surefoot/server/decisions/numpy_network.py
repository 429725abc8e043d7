"""A policy's network in numpy: a forward pass takes microseconds, and serving needs no torch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from surefoot.errors import NonFiniteValue, ShapeError


@dataclass(frozen=True, slots=True)
class _Layer:
    weight: np.ndarray
    """[in, out], contiguous: Rows and bias are centred, so that outputs have mean 0 already."""
    bias: np.ndarray
    gain: np.ndarray
    """LayerNorm's gain times the root of the width; only the division by the length remains."""
    shift: np.ndarray


Observation = Mapping[str, np.ndarray]
"""`obs` [size] and, for a decision with candidates, `candidates` [K, size]."""


class Net(Protocol):
    """Computes logits and values of a policy."""

    def answer(self, questions: Sequence[Observation]) -> list[np.ndarray]:
        """Return the logits of each observation: [actions], or [K] of its candidates."""
        ...

    def values(self, rows: np.ndarray) -> np.ndarray:
        """Return values, [B], for [B, size] float32."""
        ...


class Network:
    """embedding → 256 → 256 → 128 → logits, and a value beside it, from the weights of a version."""

    def __init__(self, weights: Mapping[str, np.ndarray], actions: int) -> None:
        self.policy = _tower(weights, "network.module.policy")
        self.value = _tower(weights, "network.module.value")
        self.size = int(self.policy[0][0].weight.shape[0])
        if self.policy[1].shape[1] != actions:
            raise ShapeError(f"the weights are for {self.policy[1].shape[1]} actions, the policy has {actions}")

    def answer(self, questions: Sequence[Observation]) -> list[np.ndarray]:
        """Return [actions] each."""
        return list(self.logits(np.array([each["obs"] for each in questions])))

    def logits(self, rows: np.ndarray) -> np.ndarray:
        """Return logits, [B, actions], for [B, size] float32."""
        return _through(self.policy, rows)

    def values(self, rows: np.ndarray) -> np.ndarray:
        """Return values, [B], for [B, size] float32."""
        return _through(self.value, rows)[:, 0]


class Described:
    """Scores candidates by their descriptions: prior · cosine + the product of both towers."""

    def __init__(self, weights: Mapping[str, np.ndarray]) -> None:
        self.query, self.described = _tower(weights, "query"), _tower(weights, "described")
        self.value = _tower(weights, "critic")
        self.prior = float(weights["prior"][0])
        self._root = math.sqrt(self.query[1].shape[1])

    def answer(self, questions: Sequence[Observation]) -> list[np.ndarray]:
        """Return [K] each; all candidates of all requests share one forward pass."""
        rows = np.array([each["obs"] for each in questions])
        candidates = np.concatenate([each["candidates"] for each in questions])
        counts = [len(each["candidates"]) for each in questions]
        whose = np.repeat(np.arange(len(counts)), counts)
        cosine = np.einsum("ij,ij->i", _unit(rows)[whose], _unit(candidates))
        met = np.einsum("ij,ij->i", _through(self.query, rows)[whose], _through(self.described, candidates))
        return np.split(self.prior * cosine + met / self._root, np.cumsum(counts)[:-1])

    def values(self, rows: np.ndarray) -> np.ndarray:
        """Return values, [B], for [B, size] float32."""
        return _through(self.value, rows)[:, 0]


def net_of(weights: Mapping[str, Any], *, actions: int) -> Net:
    """Return the network of a version's weights; `actions` is 0 for a policy over candidates."""
    arrays = {name: np.asarray(x) for name, x in weights.items()}
    network = Network(arrays, actions) if actions else Described(arrays)
    # Comparisons with NaN are false: `draw` would take the first action each time, without an error.
    for name, x in arrays.items():
        if not np.isfinite(x).all():
            raise NonFiniteValue(f"{name} holds NaN or infinity")
    return network


def _unit(rows: np.ndarray) -> np.ndarray:
    # 1e-12 is the eps of torch's `normalize`: learning and serving must compute the same probability.
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


Tower = tuple[list[_Layer], np.ndarray, np.ndarray]


def _tower(weights: Mapping[str, np.ndarray], name: str) -> Tower:
    layers: list[_Layer] = []
    place = 0
    while f"{name}.trunk.{place}.weight" in weights:
        linear, norm = f"{name}.trunk.{place}", f"{name}.trunk.{place + 1}"
        # Centred in float64 and rounded once, so that the result stays close to torch's LayerNorm.
        weight = np.asarray(weights[f"{linear}.weight"], np.float64).T
        bias = np.asarray(weights[f"{linear}.bias"], np.float64)
        layers.append(
            _Layer(
                np.ascontiguousarray(weight - weight.mean(axis=1, keepdims=True), np.float32),
                (bias - bias.mean()).astype(np.float32),
                np.asarray(weights[f"{norm}.weight"] * math.sqrt(len(bias)), np.float32),
                np.asarray(weights[f"{norm}.bias"], np.float32),
            )
        )
        # Linear, LayerNorm, ReLU; the last one has no weights.
        place += 3
    out = np.ascontiguousarray(weights[f"{name}.out.weight"].T, np.float32)
    return layers, out, np.asarray(weights[f"{name}.out.bias"], np.float32)


def _through(tower: Tower, rows: np.ndarray) -> np.ndarray:
    layers, weight, bias = tower
    x = rows
    for layer in layers:
        x = x @ layer.weight
        x += layer.bias
        length = np.add.reduce(x * x, axis=1, keepdims=True)
        length += 1e-5 * x.shape[1]  # LayerNorm's eps
        x /= np.sqrt(length, out=length)
        x *= layer.gain
        x += layer.shift
        np.maximum(x, 0.0, out=x)
    return x @ weight + bias


def probabilities(logits: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """Return probabilities of logits, [A]; 0 where the mask is false."""
    if mask is not None:
        logits = np.where(mask, logits, -np.inf)
    spread = np.exp(logits - logits.max(), dtype=np.float64)
    return spread / spread.sum()


def draw(logits: np.ndarray, masks: Sequence[np.ndarray | None], numbers: np.ndarray) -> tuple[np.ndarray, list[int]]:
    """Return probabilities, [B, A], and one action per uniform number in [0, 1); masked actions are never drawn."""
    for row, mask in zip(logits, masks, strict=True):
        if mask is not None:
            row[~mask] = -np.inf
    # float64: probabilities are logged, and off-policy evaluation divides by them.
    chances = np.exp(logits - logits.max(axis=1, keepdims=True), dtype=np.float64)
    chances /= chances.sum(axis=1, keepdims=True)
    steps = chances.cumsum(axis=1)
    # Times the last sum: rounding may leave it below 1, and a number above it would be beyond the last action.
    places = (steps <= numbers[:, None] * steps[:, -1:]).sum(axis=1).tolist()
    for row, place in enumerate(places):
        while place >= chances.shape[1] or chances[row, place] == 0.0:  # rounding at the end: the last possible one
            place -= 1
        places[row] = place
    return chances, places


def log(chance: float) -> float:
    """Return the logarithm, bounded below: a drawn action had a probability above 0, but it may have been rounded to 0."""
    return math.log(max(chance, 1e-300))
