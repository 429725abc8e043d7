"""A network on numpy's memory, and the same network written out in numpy. None of these tests needs torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from surefoot import native

SETS = [] if native.kernel is None else native.kernel.instruction_sets()
if native.kernel is None:
    collect_ignore = [p.name for p in Path(__file__).parent.glob("test_*.py") if p.name != "test_init.py"]

ACTIVATIONS = {
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
}


@dataclass(kw_only=True)
class Net:
    """A kernel network with random weights in arrays of its own."""

    isa: str = "auto"
    inputs: int = 4
    hidden: tuple[int, ...] = (8,)
    critic_hidden: tuple[int, ...] | None = None
    shared: bool = False
    activation: str = "tanh"
    head: str = "categorical"
    sizes: tuple[int, ...] = (3,)
    first_option: int = 0
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
        self.outputs = sum(self.sizes)
        low, high = (np.full(self.outputs, x, np.float32) for x in (self.low, self.high))
        bounded = self.head != "categorical"
        self.handle = native.kernel.net_new(
            instruction_set=self.isa,
            inputs=self.inputs,
            actor_widths=self.hidden,
            critic_widths=critic,
            shared=self.shared,
            activation=self.activation,
            head=self.head,
            sizes=self.sizes,
            first_option=self.first_option,
            log_std_low=-20.0,
            noise_every=0,
            log_std_high=2.0,
            low=low if bounded else None,
            high=high if bounded else None,
        )

        def layers(widths: tuple[int, ...]) -> list[np.ndarray]:
            pairs = zip((self.inputs, *widths), widths, strict=False)
            return [x for i, o in pairs for x in (rng.normal(size=(o, i)) / np.sqrt(i), rng.normal(size=o))]

        self.actor = layers(self.hidden)
        self.critic = self.actor if self.shared else layers(critic)
        last = [(self.inputs, *widths)[-1] for widths in (self.hidden, critic)]
        self.value_out = [rng.normal(size=(1, last[1])) / np.sqrt(last[1]), rng.normal(size=1)]
        self.policy_out = [rng.normal(size=(self.outputs, last[0])), rng.normal(size=self.outputs)]
        spreads = (last[0], self.outputs) if self.head == "gsde" else (self.outputs,)
        self.log_std = [] if self.head == "categorical" else [np.log(self.spread) + 0.1 * rng.normal(size=spreads)]
        parts = (self.actor, [] if self.shared else self.critic, self.value_out, self.policy_out, self.log_std)
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
        where = (0, 0) if self.normalizer is None else (x.ctypes.data for x in self.rows)
        native.kernel.net_point(self.handle, np.array(rows, np.uint64), *where, clip)
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

        raw = through(x, self.actor) @ self.policy_out[0].T.astype(np.float64) + self.policy_out[1]
        value = through(x, self.critic) @ self.value_out[0].T.astype(np.float64) + self.value_out[1]
        return raw, value[:, 0]

    def features(self, obs: np.ndarray) -> np.ndarray:
        """The actor's last hidden activations [n, width], in float64; without a normaliser."""
        h = obs.astype(np.float64)
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
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(action, env_action, log_prob, value); `rng` moves on."""
        n = len(obs)
        discrete = self.head == "categorical"
        shape, dtype = (n, len(self.sizes) if discrete else self.outputs), np.int64 if discrete else np.float32
        action, env_action = np.full(shape, -9, dtype), np.full(shape, -9, dtype)
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
        )
        return action, env_action, log_prob, value

    def values(self, obs: np.ndarray) -> np.ndarray:
        value = np.full(len(obs), np.nan, np.float32)
        native.kernel.net_values(self.handle, len(obs), obs, value)
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
