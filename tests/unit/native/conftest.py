"""A network on numpy's memory, and the same network written out in numpy. None of these tests needs torch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from surefoot import native

SETS = [] if native.kernel is None else native.kernel.instruction_sets()
if native.kernel is None:
    collect_ignore = [p.name for p in Path(__file__).parent.glob("test_*.py") if p.name != "test_init.py"]

erf = np.vectorize(math.erf, otypes=[float])
ACTIVATIONS = {
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: 0.5 * x * (1 + erf(x / np.sqrt(2))),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
}


@dataclass(kw_only=True)
class Net:
    """A kernel network with random weights in arrays of its own."""

    isa: str = "auto"
    inputs: int = 4
    critic_inputs: int = 0
    """What only the critic sees, behind the actor's inputs in a row; 0 if both see the same."""
    hidden: tuple[int, ...] = (8,)
    critic_hidden: tuple[int, ...] | None = None
    shared: bool = False
    activation: str = "tanh"
    head: str = "categorical"
    sizes: tuple[int, ...] = (3,)
    """Options of each choice."""
    numbers: int = 0
    first_option: int = 0
    memory: str = "none"
    memory_size: int = 1
    low: float = -1.0
    high: float = 1.0
    normalizer: tuple[float, float, float] | None = None
    """(shift, scale, clip), the same for every input."""
    spread: float = 0.5
    seed: int = 0
    tensors: list[np.ndarray] = field(init=False)
    handle: Any = field(init=False)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        critic = self.hidden if self.critic_hidden is None else self.critic_hidden
        if (
            self.head != "categorical" and not self.numbers
        ):  # `sizes` is short for the numbers of an action without choices
            self.numbers, self.sizes = self.sizes[0], ()
        self.options = sum(self.sizes)
        self.outputs = self.options + self.numbers * (2 if self.head == "beta" else 1)
        self.width = len(self.sizes) + self.numbers
        self.dtype = np.float32 if self.numbers else np.int64
        low, high = (np.full(self.numbers, x, np.float32) for x in (self.low, self.high))
        bounded = self.head != "categorical"
        both = self.inputs + self.critic_inputs
        self.handle = native.kernel.net_new(
            instruction_set=self.isa,
            inputs=self.inputs,
            critic_inputs=self.critic_inputs,
            actor_widths=self.hidden,
            critic_widths=critic,
            shared=self.shared,
            activation=self.activation,
            head=self.head,
            sizes=self.sizes,
            numbers=self.numbers,
            first_option=self.first_option,
            log_std_low=-20.0,
            noise_every=0,
            log_std_high=2.0,
            memory=self.memory,
            memory_size=self.memory_size,
            low=low if bounded else None,
            high=high if bounded else None,
        )

        def layers(inputs: int, widths: tuple[int, ...]) -> list[np.ndarray]:
            pairs = zip((inputs, *widths), widths, strict=False)
            return [x for i, o in pairs for x in (rng.normal(size=(o, i)) / np.sqrt(i), rng.normal(size=o))]

        seen = [self.inputs, self.critic_inputs or self.inputs]
        self.memories: list[list[np.ndarray]] = []
        if self.memory != "none":
            width = (4 if self.memory == "lstm" else 3) * self.memory_size
            shapes = [[(width, x), (width,), (width, self.memory_size), (width,)] for x in seen[: 2 - self.shared]]
            self.memories = [[0.5 * rng.normal(size=shape) for shape in each] for each in shapes]
            seen = [self.memory_size] * 2
        self.actor = layers(seen[0], self.hidden)
        self.critic = self.actor if self.shared else layers(seen[1], critic)
        last = [(seen[0], *self.hidden)[-1], (seen[1], *critic)[-1]]
        self.inputs = both
        self.value_out = [rng.normal(size=(1, last[1])) / np.sqrt(last[1]), rng.normal(size=1)]
        self.policy_out = [rng.normal(size=(self.outputs, last[0])), rng.normal(size=self.outputs)]
        spreads = (last[0], self.numbers) if self.head == "gsde" else (self.numbers,)
        self.log_std = (
            [] if self.head in ("categorical", "beta") else [np.log(self.spread) + 0.1 * rng.normal(size=spreads)]
        )
        parts = (self.actor, [] if self.shared else self.critic, self.value_out, self.policy_out, self.log_std)
        parts += tuple(self.memories)
        self.tensors = [x.astype(np.float32) for part in parts for x in part]
        begin = 0
        for part in parts:
            part[:] = self.tensors[begin : begin + len(part)]
            begin += len(part)
        self.slots: list[list[np.ndarray]] = []
        self.point()

    def point(self) -> None:
        """Tell the kernel where everything is, and have it take the weights."""
        memory = [[s.ctypes.data for s in slots] for slots in self.slots] or [[0, 0, 0]] * len(self.tensors)
        rows = [(x.ctypes.data, *slots) for x, slots in zip(self.tensors, memory, strict=True)]
        shift, scale, clip = self.normalizer or (0.0, 0.0, 0.0)
        self.rows = [np.full(self.inputs, x, np.float32) for x in (shift, scale)]
        where = (0, 0) if self.normalizer is None else tuple(x.ctypes.data for x in self.rows)
        native.kernel.net_point(
            self.handle, np.array(rows, np.uint64), *where, *(where if self.critic_inputs else (0, 0)), clip
        )
        native.kernel.net_pack(self.handle)

    def remember(self) -> None:
        """Give every tensor two optimiser slots and a step."""
        self.slots = [[np.zeros_like(x), np.zeros_like(x), np.zeros(1, np.float32)] for x in self.tensors]
        self.point()

    def forward(self, obs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(what the head is made of [n, outputs], values [n]), in float64."""
        x = obs.astype(np.float64)
        if self.normalizer is not None:
            shift, scale, clip = self.normalizer
            x = np.clip((x - shift) * scale, -clip, clip)

        def through(h: np.ndarray, layers: list[np.ndarray]) -> np.ndarray:
            for weight, bias in zip(layers[0::2], layers[1::2], strict=True):
                h = ACTIVATIONS[self.activation](h @ weight.T.astype(np.float64) + bias)
            return h

        seen = (x[:, : -self.critic_inputs], x[:, -self.critic_inputs :]) if self.critic_inputs else (x, x)
        raw = through(seen[0], self.actor) @ self.policy_out[0].T.astype(np.float64) + self.policy_out[1]
        value = through(seen[1], self.critic) @ self.value_out[0].T.astype(np.float64) + self.value_out[1]
        return raw, value[:, 0]

    def walk(self, obs: np.ndarray, start: np.ndarray, carry: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """(what the head is made of, values) of T steps of N streams [T, N, …] with memory, in float64; `carry` moves on."""
        hidden = [self._remember(k, obs, start, carry[k]) for k in range(len(self.memories))]
        heads = ((self.actor, self.policy_out), (self.critic, self.value_out))
        raw = []
        for h, (layers, (weight, bias)) in zip([hidden[0], hidden[-1]], heads, strict=True):
            for w, b in zip(layers[0::2], layers[1::2], strict=True):
                h = ACTIVATIONS[self.activation](h @ w.T.astype(np.float64) + b)
            raw.append(h @ weight.T.astype(np.float64) + bias)
        return raw[0], raw[1][..., 0]

    def _remember(self, which: int, obs: np.ndarray, start: np.ndarray, carry: np.ndarray) -> np.ndarray:
        weight_in, bias_in, weight, bias = (x.astype(np.float64) for x in self.memories[which])
        size, sigmoid = self.memory_size, lambda x: 1 / (1 + np.exp(-x))
        split = self.inputs - self.critic_inputs
        seen = obs if not self.critic_inputs else obs[..., split:] if which else obs[..., :split]
        h, c = carry[:, :size].astype(np.float64), carry[:, size:].astype(np.float64)
        hidden = []
        for x, begins in zip(seen.astype(np.float64), start, strict=True):
            h, c = (np.where(begins[:, None], 0.0, state) for state in (h, c))
            inner, onward = np.split(x @ weight_in.T + bias_in, len(bias) // size, axis=1), h @ weight.T + bias
            onward = np.split(onward, len(bias) // size, axis=1)
            if self.memory == "lstm":
                i, f, g, o = (a + b for a, b in zip(inner, onward, strict=True))
                c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
                h = sigmoid(o) * np.tanh(c)
            else:
                r, z = sigmoid(inner[0] + onward[0]), sigmoid(inner[1] + onward[1])
                h = (1 - z) * np.tanh(inner[2] + r * onward[2]) + z * h
            hidden.append(h)
        carry[:] = np.concatenate([h, c], axis=1)
        return np.stack(hidden)

    def features(self, obs: np.ndarray) -> np.ndarray:
        """The actor's last hidden activations [n, width], in float64; without a normaliser."""
        h = obs[:, : self.inputs - self.critic_inputs].astype(np.float64)
        for weight, bias in zip(self.actor[0::2], self.actor[1::2], strict=True):
            h = ACTIVATIONS[self.activation](h @ weight.T.astype(np.float64) + bias)
        return h

    def act(
        self,
        obs: np.ndarray,
        rng: np.ndarray | None = None,
        *,
        mask: np.ndarray | None = None,
        deterministic: bool = False,
        start: np.ndarray | None = None,
        carry: Sequence[np.ndarray] = (),
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(action, env_action, log_prob, value); `rng` moves on."""
        n = len(obs)
        action, env_action = (np.full((n, self.width), -9, self.dtype) for _ in range(2))
        log_prob, value = np.full(n, np.nan, np.float32), np.full(n, np.nan, np.float32)
        rng = generator() if rng is None else rng
        native.kernel.net_act(
            self.handle,
            n=n,
            rng=rng,
            obs=obs,
            mask=mask,
            deterministic=deterministic,
            action=action,
            env_action=env_action,
            log_prob=log_prob,
            value=value,
            start=start,
            carry=carry[0] if carry else None,
            critic_carry=carry[1] if len(carry) > 1 else None,
        )
        return action, env_action, log_prob, value

    def values(self, obs: np.ndarray) -> np.ndarray:
        value = np.full(len(obs), np.nan, np.float32)
        native.kernel.net_values(self.handle, len(obs), obs, None, value)
        return value


def generator(seed: int = 1) -> np.ndarray:
    """256 bits of state."""
    return np.random.default_rng(seed).integers(0, 2**64, 4, dtype=np.uint64)


@pytest.fixture(params=SETS)
def isa(request: pytest.FixtureRequest) -> str:
    """Each instruction set of this machine."""
    return request.param


@pytest.fixture
def net_of() -> type[Net]:
    """`net_of(**settings)` makes a network."""
    return Net


@pytest.fixture
def new_rng() -> Callable[[int], np.ndarray]:
    """`new_rng(seed)` makes a generator's state."""
    return generator


@pytest.fixture
def rng() -> np.ndarray:
    """One of them."""
    return generator()
