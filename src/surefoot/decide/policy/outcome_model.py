"""The expected reward of each option for a query: a guess from its description, corrected by its outcomes.

    guess   g(x, a) = (1 - h) softmax(sharpness · cos)_a + h · sigmoid(slope · (cos_a - middle)),  h = n / (n + patience K)
    model   q(x, a) = g(x, a) + θ_a · [x, 0.3],     θ_a = the ridge solution on what the guess missed, r - g(x, a)

At first the guess is the calibrated one, so that nothing is lost against the description alone. With the number of
outcomes (n, over K known options) it becomes the hopeful one: an option that was never right here, but whose description
is near, is tried once the nearer ones have failed. Ridge regression is linear in its targets, so θ for any mixture
follows from three sums per option.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from surefoot.data.kinds import NOT_NEGATIVE, POSITIVE, UNIT, real
from surefoot.data.knobs import Config, knob
from surefoot.decide.encoders.encoder import Likeness
from surefoot.decide.policy.change_detector import ChangeDetector


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One query and the options to choose from, as numbers."""

    x: np.ndarray
    """[d], length 1."""
    option: np.ndarray
    """[K] int64: the stable index of each candidate."""
    cosine: np.ndarray
    """[K]: of the query and each candidate's description."""
    described: np.ndarray | None = None
    """[options, d]: the descriptions' vectors by stable index, if known; never changed in place."""

    def __len__(self) -> int:
        return len(self.option)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeConfig(Config):
    """How quickly outcomes outweigh descriptions."""

    ridge: float = knob(
        1.0,
        "Weight of 'no correction' in each option's regression, in outcomes: more trusts the description longer.",
        real(POSITIVE),
    )
    patience: float = knob(
        13.0,
        "Outcomes per known option after which the guess is half hopeful. Fewer tries more, and sooner; 0 is hopeful from the "
        "start.",
        real(NOT_NEGATIVE),
    )
    forget: float = knob(
        0.8,
        "Share of an option's statistics that is dropped when its outcomes clearly differ from what is expected; "
        "0 never forgets.",
        real(UNIT),
    )
    surprise: float = knob(
        4.0,
        "How clearly: standard deviations between expected and observed successes over the option's last outcomes.",
        real(POSITIVE),
    )


CALIBRATED, HOPEFUL = 0, 1
# A constant feature lets an option be worse everywhere than its description suggests. Below the query's length of 1, so that
# the query explains outcomes first.
BIAS = 0.3


class OutcomeModel:
    """The sums of every option with outcomes; the value of the others is their guess."""

    def __init__(self, dim: int, likeness: Likeness, config: OutcomeConfig | None = None) -> None:
        self.dim, self.likeness, self.config = dim, likeness, config or OutcomeConfig()
        self.outcomes, self.options = 0, 1
        """Outcomes learned from, and options met in them."""
        self.forgotten = 0
        """Number of detected changes."""
        self._inverse: dict[int, np.ndarray] = {}
        self._sums: dict[int, np.ndarray] = {}
        """[3, d] an option: Σ r·x, Σ calibrated·x, Σ hopeful·x."""
        self._changes = ChangeDetector(self.config.surprise)
        self._theta = np.zeros((0, 3, dim + 1), np.float32)

    @property
    def hope(self) -> float:
        """h: the share of the hopeful guess by now."""
        known, patience = self.options, self.config.patience
        return self.outcomes / (self.outcomes + patience * known) if self.outcomes else float(patience == 0.0)

    def guesses(self, cosine: np.ndarray, valid: np.ndarray | None = None) -> np.ndarray:
        """Return the calibrated and the hopeful guess, [2, …, K]; 0 for candidates that are not `valid`."""
        like, guesses = self.likeness, np.empty((2, *cosine.shape), np.float32)
        top = cosine.max(axis=-1, keepdims=True, initial=-1.0, where=True if valid is None else valid)
        # At most 0: a candidate that is not valid may be above `top`, and its exponential could overflow.
        calibrated = np.exp(like.sharpness * np.minimum(cosine - top, 0.0))
        # 60: float32 overflows at exp(88.7), and a guess of 1e-26 is as good as 0.
        hopeful = 1.0 / (1.0 + np.exp(np.minimum(-like.slope * (cosine - like.middle), 60.0)))
        if valid is not None:
            calibrated, hopeful = calibrated * valid, hopeful * valid
        np.divide(calibrated, calibrated.sum(axis=-1, keepdims=True), out=guesses[CALIBRATED], casting="same_kind")
        guesses[HOPEFUL] = hopeful
        return guesses

    def guess(self, scene: Scene) -> np.ndarray:
        """Return the guess from the descriptions alone, [K]."""
        calibrated, hopeful = self.guesses(scene.cosine)
        return calibrated + np.float32(self.hope) * (hopeful - calibrated)

    def predict(self, scene: Scene) -> np.ndarray:
        """Return q(x, a), [K]: about the expected reward if rewards are 0 or 1."""
        return self.guess(scene) + self.correction(scene)

    def correction(self, scene: Scene) -> np.ndarray:
        """Return θ_a · x for the present mixture, [K]."""
        return times(self.theta(), scene.option, with_bias(scene.x))

    def theta(self) -> np.ndarray:
        """Return the correction of each option for the present mixture, [options, d + 1]."""
        if self._mixed is None:
            t, h = self._theta, np.float32(self.hope)
            self._mixed = t[:, 0] - t[:, 1] - h * (t[:, 2] - t[:, 1])
        return self._mixed

    _mixed: np.ndarray | None = None

    def best(self, scene: Scene, worth: np.ndarray, factor: np.ndarray) -> int:
        """Return the candidate with the largest estimate + factor · sqrt(xᵀ A⁻¹ x), where the root is its uncertainty.

        Only uncertainties that can decide are computed: none exceeds that of an option without outcomes.
        """
        x = with_bias(scene.x)
        most = math.sqrt(float(x @ x) / self.config.ridge)
        upper, lower = worth + most * np.maximum(factor, 0.0), worth + most * np.minimum(factor, 0.0)
        best, highest = int(worth.argmax()), -math.inf
        for k in np.argsort(-upper):
            if upper[k] < max(highest, float(lower.max())):
                break
            inverse = self._inverse.get(int(scene.option[k]))
            # Rounding in the rank-one updates may leave the inverse slightly indefinite: no root of a negative number.
            width = most if inverse is None else math.sqrt(max(0.0, float(x @ inverse @ x)))
            if worth[k] + factor[k] * width > highest:
                best, highest = int(k), float(worth[k] + factor[k] * width)
        return best

    def learn(self, scene: Scene, at: int, reward: float) -> None:
        """Learn that candidate number `at` had this reward."""
        a, x = int(scene.option[at]), with_bias(scene.x)
        calibrated, hopeful = self.guesses(scene.cosine)[:, at]
        # Before the sums change: an outcome must not take part in its own prediction.
        if self.config.forget > 0.0:
            self._look_for_change(a, float(self.predict(scene)[at]), reward)
        if a not in self._inverse:
            self._inverse[a] = np.eye(self.dim + 1, dtype=np.float32) / np.float32(self.config.ridge)
            self._sums[a] = np.zeros((3, self.dim + 1), np.float32)
            self._grow(a + 1)
        inverse, sums = self._inverse[a], self._sums[a]
        along = inverse @ x
        inverse -= np.outer(along, along / (1.0 + float(x @ along)))  # Sherman–Morrison
        sums += np.array([[reward], [calibrated], [hopeful]], np.float32) * x
        self._theta[a] = sums @ inverse
        self.outcomes += 1
        self.options = max(self.options, int(scene.option.max()) + 1)
        self._mixed = None

    def _grow(self, options: int) -> None:
        if options > len(self._theta):
            more = np.zeros((max(options, 2 * len(self._theta), 16), 3, self.dim + 1), np.float32)
            more[: len(self._theta)] = self._theta
            self._theta = more

    def _look_for_change(self, option: int, expected: float, reward: float) -> None:
        """Drop most of an option's statistics if it fails where it is expected to succeed."""
        if not self._changes.observe(option, expected, reward) or option not in self._inverse:
            return
        keep = 1.0 - self.config.forget
        # In float64: two inversions in float32 would add their error to an inverse that already has some.
        known = np.linalg.inv(self._inverse[option].astype(np.float64))
        # The dropped part becomes ridge, not 0, so that the matrix stays well conditioned.
        reset = keep * known + (1.0 - keep) * self.config.ridge * np.eye(self.dim + 1)
        self._inverse[option] = np.linalg.inv(reset).astype(np.float32)
        self._sums[option] *= np.float32(keep)
        self._theta[option] = self._sums[option] @ self._inverse[option]
        self._mixed = None
        self.forgotten += 1

    def state(self) -> dict[str, Any]:
        """Return arrays and numbers from which `set_state` continues bit-exactly."""
        options = sorted(self._inverse)
        none = np.zeros((0, self.dim + 1, self.dim + 1), np.float32)
        return {
            "options": np.array(options, np.int64),
            "inverse": np.stack([self._inverse[a] for a in options]) if options else none,
            "sums": np.stack([self._sums[a] for a in options]) if options else none[:, :3],
            "watch": self._changes.state(),
            "outcomes": self.outcomes,
            "met": self.options,
            "forgotten": self.forgotten,
        }

    def set_state(self, state: dict[str, Any]) -> Self:
        self.outcomes, self.forgotten = int(state["outcomes"]), int(state["forgotten"])
        self.options, self._mixed = int(state["met"]), None
        self._changes.set_state(state["watch"])
        self._inverse, self._sums = {}, {}
        self._theta = np.zeros((0, 3, self.dim + 1), np.float32)
        for a, inverse, sums in zip(state["options"], state["inverse"], state["sums"], strict=True):
            self._inverse[int(a)], self._sums[int(a)] = np.array(inverse), np.array(sums)
            self._grow(int(a) + 1)
            self._theta[int(a)] = sums @ inverse
        return self


def with_bias(x: np.ndarray) -> np.ndarray:
    """Return x with the constant feature appended, […, d + 1]."""
    extended = np.empty((*x.shape[:-1], x.shape[-1] + 1), np.float32)
    extended[..., :-1], extended[..., -1] = x, BIAS
    return extended


def times(table: np.ndarray, option: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return row `option` of a table times x, [K]; 0 for options beyond the table."""
    if not len(table) or not len(option):
        return np.zeros(len(option), np.float32)
    known = None if int(option.max()) < len(table) else option < len(table)
    rows = option if known is None else option[known]
    # One product with the whole table is cheaper than a copy of most of its rows.
    product = (table @ x)[rows] if 4 * len(rows) >= len(table) else table[rows] @ x
    if known is None:
        return product
    products = np.zeros(len(option), np.float32)
    products[known] = product
    return products
