"""What each option is likely worth for a query: a guess from its description, corrected by its outcomes.

    guess   g(x, a) = (1 - h) softmax(sharpness · cos)_a + h · sigmoid(slope · (cos_a - middle)),  h = n / (n + patience K)
    model   q(x, a) = g(x, a) + θ_a · [x, 0.3],     θ_a = the ridge solution on what the guess missed, r - g(x, a)

Early on the guess is the calibrated one, so that nothing is lost against the description alone. With the outcomes seen
(n, of K options met so far) it turns into the hopeful one: an option that was never right here, but whose description is
near, is worth a try once the nearer ones have failed. As ridge is linear in its targets, θ for any mixture follows from
three sums an option.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from surefoot.data.kinds import NOT_NEGATIVE, POSITIVE, UNIT, real
from surefoot.data.knobs import Config, knob
from surefoot.decide.encoders.encoder import Likeness


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One query and the options to choose from, as numbers."""

    x: np.ndarray
    """[d], length 1."""
    option: np.ndarray
    """[K] int64: the stable index of each candidate."""
    cosine: np.ndarray
    """[K]: of the query and each candidate's description."""

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
        "Share of what is known of an option that is let go when its outcomes are clearly not as expected any more; "
        "0 never forgets.",
        real(UNIT),
    )
    surprise: float = knob(
        4.0,
        "How clearly: deviations between expected and seen successes over the last outcomes of that option.",
        real(POSITIVE),
    )


CALIBRATED, HOPEFUL = 0, 1
BIAS = 0.3
"""A feature that is always there, so that an option can be worse everywhere than its description says."""
_WATCHED = 30
"""Outcomes over which an option's surprise is measured."""


class OutcomeModel:
    """Holds the sums of every option that has outcomes; the others are worth their guess."""

    def __init__(self, dim: int, likeness: Likeness, config: OutcomeConfig | None = None) -> None:
        self.dim, self.likeness, self.config = dim, likeness, config or OutcomeConfig()
        self.outcomes, self.options = 0, 1
        """Outcomes learned from, and options met in them."""
        self.forgotten = 0
        """How often an option was found to have changed."""
        self._inverse: dict[int, np.ndarray] = {}
        self._sums: dict[int, np.ndarray] = {}
        """[3, d] an option: Σ r·x, Σ calibrated·x, Σ hopeful·x."""
        self._watch: dict[int, list[tuple[float, float]]] = {}
        self._theta = np.zeros((0, 3, dim + 1), np.float32)

    @property
    def hope(self) -> float:
        """h: the share of the hopeful guess by now."""
        known, patience = self.options, self.config.patience
        return self.outcomes / (self.outcomes + patience * known) if self.outcomes else float(patience == 0.0)

    def guesses(self, cosine: np.ndarray, valid: np.ndarray | None = None) -> np.ndarray:
        """[2, …, K]: calibrated and hopeful; candidates that are not `valid` get nothing."""
        like, made = self.likeness, np.empty((2, *cosine.shape), np.float32)
        top = cosine.max(axis=-1, keepdims=True, initial=-1.0, where=True if valid is None else valid)
        calibrated = np.exp(like.sharpness * np.minimum(cosine - top, 0.0))
        hopeful = 1.0 / (1.0 + np.exp(np.minimum(-like.slope * (cosine - like.middle), 60.0)))
        if valid is not None:
            calibrated, hopeful = calibrated * valid, hopeful * valid
        np.divide(calibrated, calibrated.sum(axis=-1, keepdims=True), out=made[CALIBRATED], casting="same_kind")
        made[HOPEFUL] = hopeful
        return made

    def guess(self, scene: Scene) -> np.ndarray:
        """[K]: what the descriptions alone say."""
        calibrated, hopeful = self.guesses(scene.cosine)
        return calibrated + np.float32(self.hope) * (hopeful - calibrated)

    def predict(self, scene: Scene) -> np.ndarray:
        """[K]: q(x, a), about the expected reward where rewards are 0 or 1."""
        return self.guess(scene) + self.correction(scene)

    def correction(self, scene: Scene) -> np.ndarray:
        """[K]: θ_a · x, for the present mixture."""
        return times(self.theta(), scene.option, with_bias(scene.x))

    def theta(self) -> np.ndarray:
        """[options, d + 1]: the correction of each option, for the present mixture."""
        if self._mixed is None:
            t, h = self._theta, np.float32(self.hope)
            self._mixed = t[:, 0] - t[:, 1] - h * (t[:, 2] - t[:, 1])
        return self._mixed

    _mixed: np.ndarray | None = None

    def width(self, scene: Scene) -> np.ndarray:
        """[K]: sqrt(xᵀ A⁻¹ x), how little is known of each candidate for this query."""
        x = with_bias(scene.x)
        prior = float(x @ x) / self.config.ridge
        inverse = [self._inverse.get(int(a)) for a in scene.option]
        return np.sqrt([prior if p is None else max(0.0, float(x @ p @ x)) for p in inverse])

    def learn(self, scene: Scene, at: int, reward: float) -> None:
        """Candidate number `at` was tried and came to `reward`."""
        a, x = int(scene.option[at]), with_bias(scene.x)
        calibrated, hopeful = self.guesses(scene.cosine)[:, at]
        if self.config.forget > 0.0:
            self._look_for_change(a, float(self.predict(scene)[at]), reward)
        if a not in self._inverse:
            self._inverse[a] = np.eye(self.dim + 1, dtype=np.float32) / np.float32(self.config.ridge)
            self._sums[a] = np.zeros((3, self.dim + 1), np.float32)
            self._grow(a + 1)
        inverse, sums = self._inverse[a], self._sums[a]
        along = inverse @ x
        inverse -= np.outer(along, along / (1.0 + float(x @ along)))  # Sherman and Morrison
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
        """An option that fails where it is expected to succeed has changed: let most of it go."""
        watch = self._watch.setdefault(option, [])
        watch.append((min(max(expected, 0.05), 0.95), reward))
        if len(watch) > _WATCHED:
            del watch[0]
        if len(watch) < _WATCHED // 2 or option not in self._inverse:
            return
        said, seen = np.array(watch).T
        gap = float((seen - said).sum()) / float(np.sqrt((said * (1.0 - said)).sum()))
        if gap > -self.config.surprise:
            return
        keep = 1.0 - self.config.forget
        known = np.linalg.inv(self._inverse[option].astype(np.float64))
        reset = keep * known + (1.0 - keep) * self.config.ridge * np.eye(self.dim + 1)
        self._inverse[option] = np.linalg.inv(reset).astype(np.float32)
        self._sums[option] *= np.float32(keep)
        self._theta[option] = self._sums[option] @ self._inverse[option]
        self._mixed = None
        watch.clear()
        self.forgotten += 1

    def state(self) -> dict[str, Any]:
        """Arrays and numbers from which `set_state` goes on, to the last digit."""
        options = sorted(self._inverse)
        none = np.zeros((0, self.dim + 1, self.dim + 1), np.float32)
        return {
            "options": np.array(options, np.int64),
            "inverse": np.stack([self._inverse[a] for a in options]) if options else none,
            "sums": np.stack([self._sums[a] for a in options]) if options else none[:, :3],
            "watch": {str(a): [[float(e), float(r)] for e, r in rows] for a, rows in self._watch.items()},
            "outcomes": self.outcomes,
            "met": self.options,
            "forgotten": self.forgotten,
        }

    def set_state(self, state: dict[str, Any]) -> Self:
        """Go on from where `state` was taken."""
        self.outcomes, self.forgotten = int(state["outcomes"]), int(state["forgotten"])
        self.options, self._mixed = int(state["met"]), None
        self._watch = {int(a): [(e, r) for e, r in rows] for a, rows in state["watch"].items()}
        self._inverse, self._sums = {}, {}
        self._theta = np.zeros((0, 3, self.dim + 1), np.float32)
        for a, inverse, sums in zip(state["options"], state["inverse"], state["sums"], strict=True):
            self._inverse[int(a)], self._sums[int(a)] = np.array(inverse), np.array(sums)
            self._grow(int(a) + 1)
            self._theta[int(a)] = sums @ inverse
        return self


def with_bias(x: np.ndarray) -> np.ndarray:
    """[…, d + 1]: x and the feature that is always there."""
    made = np.empty((*x.shape[:-1], x.shape[-1] + 1), np.float32)
    made[..., :-1], made[..., -1] = x, BIAS
    return made


def times(table: np.ndarray, option: np.ndarray, x: np.ndarray) -> np.ndarray:
    """[K]: row `option` of a table times x; options beyond it have 0. Copies no rows where most of them are asked for."""
    if not len(table) or not len(option):
        return np.zeros(len(option), np.float32)
    known = None if int(option.max()) < len(table) else option < len(table)
    rows = option if known is None else option[known]
    product = (table @ x)[rows] if 4 * len(rows) >= len(table) else table[rows] @ x
    if known is None:
        return product
    found = np.zeros(len(option), np.float32)
    found[known] = product
    return found
